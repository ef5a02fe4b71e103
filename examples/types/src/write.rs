//! Writes the wire types of a crate as TypeScript.

use std::collections::{BTreeSet, VecDeque};

use syn::{Attribute, Field, Fields, GenericArgument, ItemEnum, ItemStruct, PathArguments, Type};

use crate::known::{MEMBERS, TYPES};
use crate::serde_attrs::{Serde, jsdoc, path};
use crate::source::{Declared, Source};
use crate::syntax::{TaggedEnum, TaggedStruct};
use crate::text::{Member, object_of, of_union, of_words, together};

/// The wire types of one crate, as the text of its `frames.d.ts`.
pub(crate) struct Writer<'s> {
    /// The protocol.
    of: &'s str,
    source: &'s Source,
    /// Types whose names were used, but that are not written yet.
    pending: VecDeque<String>,
    seen: BTreeSet<String>,
    /// What was used of `known`.
    used: BTreeSet<&'static str>,
}

impl<'s> Writer<'s> {
    pub(crate) fn new(of: &'s str, source: &'s Source) -> Self {
        Self {
            of,
            source,
            pending: VecDeque::new(),
            seen: BTreeSet::new(),
            used: BTreeSet::new(),
        }
    }

    pub(crate) fn write(mut self) -> String {
        let mut text = format!(
            "// The frames of the {} protocol. Generated from the Rust types of {0}-proto: do not edit.\n\
             //\n\
             // A member that peers may leave out is optional, and null if some of them send that: leave it out.\n\
             // Ignore frames of other types, and other members.\n\n\
             /** Any JSON value. */\n\
             export type Json = null | boolean | number | string | Json[] | {{ [name: string]: Json }};\n",
            self.of
        );
        for root in ["ClientFrame", "ServerFrame"] {
            self.need(root);
        }
        for (of, name, text) in TYPES {
            if of == self.of && text != "number" {
                self.need(name);
            }
        }
        for name in &self.source.exported {
            if self.source.is_wire(name) && self.known_type(name) != Some("number") {
                self.need(name);
            }
        }
        while let Some(name) = self.pending.pop_front() {
            text.push('\n');
            text += &self.declare(&name);
        }
        for (of, name, _) in TYPES.iter().chain(&MEMBERS) {
            assert!(
                *of != self.of || self.used.contains(name),
                "{of}: {name} is not used"
            );
        }
        text
    }

    fn need(&mut self, name: &str) {
        if self.seen.insert(name.to_owned()) {
            self.pending.push_back(name.to_owned());
        }
    }

    fn known_type(&mut self, name: &str) -> Option<&'static str> {
        let mut known = TYPES.iter().filter(|it| it.0 == self.of && it.1 == name);
        let (_, name, text) = known.next()?;
        self.used.insert(name);
        Some(text)
    }

    fn known_member(&mut self, of: &str, member: &str) -> Option<String> {
        let name = format!("{of}.{member}");
        let mut known = MEMBERS.iter().filter(|it| it.0 == self.of && it.1 == name);
        let (_, name, text) = known.next()?;
        self.used.insert(name);
        self.need_names_in(text);
        Some((*text).to_owned())
    }

    /// The types that a known text names.
    fn need_names_in(&mut self, text: &str) {
        for word in text.split(|letter: char| !letter.is_alphanumeric()) {
            if self.source.is_wire(word) || self.known_type(word).is_some() {
                self.need(word);
            }
        }
    }

    fn declare(&mut self, name: &str) -> String {
        let source = self.source;
        if let Some(text) = self.known_type(name) {
            self.need_names_in(text);
            let doc = jsdoc(source.docs_of(name), "");
            return format!("{doc}export type {name} = {text};\n");
        }
        let by_hand = || panic!("{}: {name} is written by hand", self.of);
        let (attrs, text): (&[Attribute], _) = match source.get(name).unwrap_or_else(by_hand) {
            Declared::Struct(item) => (&item.attrs, self.of_struct(name, item)),
            Declared::Enum(item) => (&item.attrs, self.of_enum(name, item)),
            Declared::Alias(of) => (&[], self.of_type(of)),
            Declared::Words(words) => (&words.attrs, of_words(words)),
            Declared::TaggedEnum(item) => (&item.attrs, self.of_tagged_enum(name, item)),
            Declared::TaggedStruct(item) => (&item.attrs, self.of_tagged_struct(item)),
        };
        let space = if text.starts_with('\n') { "" } else { " " };
        format!("{}export type {name} ={space}{text};\n", jsdoc(attrs, ""))
    }

    fn of_struct(&mut self, name: &str, item: &ItemStruct) -> String {
        let serde = Serde::of(&item.attrs).unwrap();
        if let Some(into) = serde.get("into") {
            return self.into(name, into);
        }
        if let Fields::Unnamed(fields) = &item.fields {
            let [one] = &*fields.unnamed.iter().collect::<Vec<_>>() else {
                panic!("{name} is a tuple");
            };
            return self.of_type(&one.ty);
        }
        let mut members = Vec::new();
        if let Some(tag) = serde.get("tag") {
            members.push(Member::tag(tag, &serde.rename(name, None)));
        }
        self.object(name, &serde, &item.fields, members)
    }

    /// What a type is turned into to be written.
    fn into(&mut self, name: &str, into: &str) -> String {
        match self.source.members_of(into) {
            Some(item) => self.of_struct(name, item),
            None => leaf(into).expect("a type that is written").to_owned(),
        }
    }

    /// The members of a struct or of a variant, in one object and what is flattened into it.
    fn object(
        &mut self,
        of: &str,
        on: &Serde,
        fields: &Fields,
        mut members: Vec<Member>,
    ) -> String {
        let mut parts = Vec::new();
        let source = self.source;
        let from = on.get("from").and_then(|from| source.members_of(from));
        for field in fields {
            let serde = Serde::of(&field.attrs).unwrap();
            let ident = field.ident.as_ref().expect("a named field").to_string();
            if serde.has("skip") {
                continue;
            }
            let known = self.known_member(of, &ident);
            assert!(
                known.is_some() || !serde.has("serialize_with"),
                "{of}.{ident} has a writer of its own"
            );
            if serde.has("flatten") {
                parts.push(known.unwrap_or_else(|| match inner(&field.ty, "Option") {
                    Some(it) => format!("Partial<{}>", self.of_type(it)),
                    None => self.of_type(&field.ty),
                }));
                continue;
            }
            let name = serde.rename(&ident, on.get("rename_all"));
            let reading = Reading::of(field, on);
            let reading = from
                .and_then(|it| Reading::in_struct(it, &name))
                .unwrap_or(reading);
            let optional = inner(&field.ty, "Option");
            let is_skipped = serde.has("skip_serializing_if");
            let mut text = known.unwrap_or_else(|| match serde.reader() {
                Some(reader) if is_raw(&field.ty) && LISTS.contains(&reader) => "Json[]".to_owned(),
                Some(reader) if is_raw(&field.ty) && OBJECTS.contains(&reader) => OBJECT.to_owned(),
                Some("super::time") => "string".to_owned(),
                _ => self.of_type(optional.unwrap_or(&field.ty)),
            });
            // Neither left out nor written in another way.
            let is_null_written = optional.is_some() && !is_skipped && !serde.has("serialize_with");
            if reading.is_nullable || is_null_written {
                text += " | null";
            }
            let mut member = Member::new(&name, &text);
            member.doc = jsdoc(&field.attrs, "  ");
            member.is_optional |= is_skipped || reading.is_optional;
            members.push(member);
        }
        together(&members, &parts)
    }

    fn of_enum(&mut self, name: &str, item: &ItemEnum) -> String {
        let serde = Serde::of(&item.attrs).unwrap();
        if let Some(into) = serde.get("into") {
            return self.into(name, into);
        }
        let all = serde.get("rename_all");
        let mut union = Vec::new();
        // Without unknown ones: their type would allow every known frame with a mistake.
        for variant in item.variants.iter().filter(|it| it.ident != "Unknown") {
            let on = Serde::of(&variant.attrs).unwrap();
            let ident = variant.ident.to_string();
            let wire = on.rename(&ident, all);
            let mut members = Vec::new();
            if let Some(tag) = serde.get("tag") {
                members.push(Member::tag(tag, &wire));
            }
            let known = self.known_member(name, &ident);
            assert!(
                known.is_some() || !on.has("serialize_with"),
                "{name}.{ident}"
            );
            let of = known.unwrap_or_else(|| match &variant.fields {
                Fields::Unit if serde.has("untagged") => panic!("{name}.{ident} is null"),
                Fields::Unit if members.is_empty() => format!("{wire:?}"),
                Fields::Unnamed(fields) => {
                    let content = fields.unnamed.first().map(|it| self.of_type(&it.ty));
                    let content = content.expect("a variant with content");
                    together(&members, &[content])
                }
                fields => self.object(&format!("{name}.{ident}"), &on, fields, members),
            });
            assert!(
                serde.has("tag") || serde.has("untagged") || matches!(variant.fields, Fields::Unit),
                "{name} has a tag of its own kind"
            );
            union.push((jsdoc(&variant.attrs, "  "), of));
        }
        of_union(&union)
    }

    fn of_tagged_enum(&mut self, name: &str, item: &TaggedEnum) -> String {
        let mut union = Vec::new();
        for variant in &item.variants {
            let mut members = vec![Member::tag(&item.tag, &variant.tag)];
            let mut parts = Vec::new();
            if let Some(of) = &variant.of {
                let optional = inner(of, "Option");
                let known = self.known_member(name, &variant.name.to_string());
                let of = known.unwrap_or_else(|| match optional {
                    Some(it) => format!("?{} | null", self.of_type(it)),
                    None => self.of_type(of),
                });
                match (&variant.member, &item.content) {
                    (Some(member), Some(content)) => {
                        let inside = object_of(&[Member::new(member, &of)]);
                        members.push(Member::new(content, &inside));
                    }
                    (Some(member), None) | (None, Some(member)) => {
                        members.push(Member::new(member, &of));
                    }
                    (None, None) => parts.push(of),
                }
            } else if let (Some(content), true) = (&item.content, variant.is_written) {
                members.push(Member::new(content, "?Json"));
            }
            union.push((jsdoc(&variant.attrs, "  "), together(&members, &parts)));
        }
        of_union(&union)
    }

    fn of_tagged_struct(&mut self, item: &TaggedStruct) -> String {
        let mut members = Vec::new();
        let mut parts = Vec::new();
        for member in &item.members {
            let Some(wire) = &member.name else {
                parts.push(self.of_type(&member.of));
                continue;
            };
            let optional = inner(&member.of, "Option");
            let of = match optional {
                Some(it) => format!("?{} | null", self.of_type(it)),
                None => self.of_type(&member.of),
            };
            let mut written = Member::new(wire, &of);
            written.doc = jsdoc(&member.attrs, "  ");
            members.push(written);
        }
        together(&members, &parts)
    }

    fn of_type(&mut self, of: &Type) -> String {
        let Type::Path(named) = of else {
            panic!("{}: a type without a name", self.of);
        };
        let full = path(&named.path);
        let name = full.rsplit("::").next().unwrap_or_default();
        if let Some(it) = inner(of, "Box") {
            return self.of_type(it);
        }
        if let Some(it) = inner(of, "Vec") {
            let it = self.of_type(it);
            return if it.contains(' ') {
                format!("({it})[]")
            } else {
                it + "[]"
            };
        }
        if let Some(leaf) = leaf(name) {
            return leaf.to_owned();
        }
        if let Some(text @ "number") = self.known_type(name) {
            return text.to_owned();
        }
        // The name of an id says nothing here.
        if let Some(Declared::Alias(of)) = self.source.get(name) {
            return self.of_type(of);
        }
        self.need(name);
        name.to_owned()
    }
}

/// The types of `rpc_core` and of the standard library.
fn leaf(name: &str) -> Option<&'static str> {
    Some(match name {
        "bool" => "boolean",
        "u32" | "u64" | "i64" | "f64" => "number",
        "Str" | "String" | "Id" | "CallId" => "string",
        "Json" => "Json",
        "LooseStr" => "string | boolean | null",
        _ => return None,
    })
}

/// The `T` of `Option<T>`, where `of` is `Option`.
fn inner<'t>(ty: &'t Type, of: &str) -> Option<&'t Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) if last.ident == of => Some(ty),
        _ => None,
    }
}

/// How a member is read.
struct Reading {
    /// Whether it may be absent.
    is_optional: bool,
    /// Whether null counts as absent.
    is_nullable: bool,
}

impl Reading {
    fn of(field: &Field, on: &Serde) -> Self {
        let serde = Serde::of(&field.attrs).unwrap();
        let reader = serde.reader().unwrap_or_default();
        let is_option = inner(&field.ty, "Option").is_some();
        // These leave out any value of another type, which says nothing about null.
        let is_strict = reader == "some" || reader.starts_with("loose::");
        Self {
            is_optional: is_option || serde.has("default") || on.has("default"),
            is_nullable: is_option && !is_strict || reader.ends_with("or_default"),
        }
    }

    /// How a member of this name on the wire is read, where a type is read as another.
    fn in_struct(item: &ItemStruct, name: &str) -> Option<Self> {
        let on = Serde::of(&item.attrs).unwrap();
        let field = item.fields.iter().find(|field| {
            let ident = field.ident.as_ref().expect("a named field").to_string();
            Serde::of(&field.attrs)
                .unwrap()
                .rename(&ident, on.get("rename_all"))
                == name
        });
        field.map(|field| Self::of(field, &on))
    }
}

/// Whether a member is kept as it was sent.
fn is_raw(ty: &Type) -> bool {
    let ty = inner(ty, "Option").unwrap_or(ty);
    matches!(ty, Type::Path(of) if of.path.is_ident("Json"))
}

/// Readers of raw arrays, and of raw objects.
const LISTS: [&str; 3] = ["array", "optional_array", "opt::array"];
const OBJECTS: [&str; 6] = [
    "args",
    "object",
    "optional_object",
    "optional_verbatim_object",
    "opt::object",
    "opt::verbatim",
];
const OBJECT: &str = "{ [name: string]: Json }";
