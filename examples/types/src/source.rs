//! The types in the source of a crate, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::{Attribute, Item, ItemEnum, ItemStruct, Type, UseTree};

use crate::serde_attrs::path;
use crate::syntax::{Members, Tagged, TaggedEnum, TaggedStruct, Words};

/// A type, in the way in which it is declared.
pub(crate) enum Declared {
    Struct(ItemStruct),
    Enum(ItemEnum),
    Alias(Type),
    Words(Words),
    TaggedEnum(TaggedEnum),
    TaggedStruct(TaggedStruct),
}

#[derive(Default)]
pub(crate) struct Source {
    types: BTreeMap<String, Vec<Declared>>,
    /// Types with a `Serialize` of their own.
    by_hand: BTreeSet<String>,
    /// What `frame` exports.
    pub(crate) exported: Vec<String>,
}

impl Source {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut source = Self::default();
        source.read_folder(&folder.join("src"));
        let frame = parse(&folder.join("src/frame/mod.rs"));
        for item in frame.items {
            if let Item::Use(item) = item
                && matches!(item.vis, syn::Visibility::Public(_))
            {
                exported(&item.tree, &mut source.exported);
            }
        }
        source
    }

    fn read_folder(&mut self, folder: &Path) {
        let entries = fs::read_dir(folder).unwrap();
        // In any order there is the same result.
        let paths: BTreeSet<_> = entries.map(|entry| entry.unwrap().path()).collect();
        for path in paths {
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|it| it == "rs") {
                self.read_items(parse(&path).items);
            }
        }
    }

    fn read_items(&mut self, items: Vec<Item>) {
        for item in items {
            let (name, declared) = match item {
                Item::Struct(item) => (item.ident.clone(), Declared::Struct(item)),
                Item::Enum(item) => (item.ident.clone(), Declared::Enum(item)),
                Item::Type(item) => (item.ident.clone(), Declared::Alias(*item.ty)),
                Item::Macro(item) if item.mac.path.is_ident("members") => {
                    let Members(structs) = item.mac.parse_body().unwrap();
                    self.read_items(structs.into_iter().map(Item::Struct).collect());
                    continue;
                }
                Item::Macro(item) if item.mac.path.is_ident("words") => {
                    let words: Words = item.mac.parse_body().unwrap();
                    (words.name.clone(), Declared::Words(words))
                }
                Item::Macro(item) if item.mac.path.is_ident("tagged") => {
                    match item.mac.parse_body().unwrap() {
                        Tagged::Enum(it) => (it.name.clone(), Declared::TaggedEnum(it)),
                        Tagged::Struct(it) => (it.name.clone(), Declared::TaggedStruct(it)),
                    }
                }
                Item::Impl(item) => {
                    let of = item.trait_.as_ref().map(|(_, of, _)| path(of));
                    if let (Some("Serialize"), Type::Path(by)) = (of.as_deref(), &*item.self_ty) {
                        self.by_hand.insert(path(&by.path));
                    }
                    continue;
                }
                _ => continue,
            };
            let types = self.types.entry(name.to_string()).or_default();
            types.push(declared);
        }
    }

    /// The wire type of this name. Of several types of one name only one may be on the wire.
    pub(crate) fn get(&self, name: &str) -> Option<&Declared> {
        let all = self.types.get(name).map_or(&[][..], |all| all);
        let mut wire = all.iter().filter(|it| it.is_wire());
        let first = wire.next();
        assert!(wire.next().is_none(), "there are two types {name}");
        first
    }

    /// Whether a type is on the wire, and if it is a `Serialize` of its own that writes it.
    pub(crate) fn is_wire(&self, name: &str) -> bool {
        self.get(name).is_some() || self.by_hand.contains(name)
    }

    /// The struct that a type is read from or turned into.
    pub(crate) fn members_of(&self, name: &str) -> Option<&ItemStruct> {
        let all = self.types.get(name)?;
        let [one] = &**all else {
            return match self.get(name) {
                Some(Declared::Struct(one)) => Some(one),
                _ => panic!("there are two types {name}"),
            };
        };
        match one {
            Declared::Struct(one) => Some(one),
            _ => None,
        }
    }

    /// The doc comment of a type.
    pub(crate) fn docs_of(&self, name: &str) -> &[Attribute] {
        match self.types.get(name).and_then(|all| all.first()) {
            Some(Declared::Struct(item)) => &item.attrs,
            Some(Declared::Enum(item)) => &item.attrs,
            Some(Declared::Words(item)) => &item.attrs,
            _ => &[],
        }
    }
}

impl Declared {
    /// Whether the declaration says how the type is written.
    fn is_wire(&self) -> bool {
        let attrs = match self {
            Self::Struct(item) => &item.attrs,
            Self::Enum(item) => &item.attrs,
            _ => return true,
        };
        let mut derives = false;
        for attr in attrs.iter().filter(|it| it.path().is_ident("derive")) {
            attr.parse_nested_meta(|meta| {
                derives |= path(&meta.path) == "Serialize";
                Ok(())
            })
            .unwrap();
        }
        derives
    }
}

fn parse(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).unwrap();
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn exported(tree: &UseTree, names: &mut Vec<String>) {
    match tree {
        UseTree::Path(path) => exported(&path.tree, names),
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Group(group) => group.items.iter().for_each(|it| exported(it, names)),
        UseTree::Rename(_) | UseTree::Glob(_) => panic!("`frame` exports in an unknown way"),
    }
}
