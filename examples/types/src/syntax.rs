//! The syntax of `members!`, `tagged!` and `words!`, as `rpc_core` defines them.

use syn::parse::{Parse, ParseStream, Parser as _};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, Field, Fields, FieldsNamed, Ident, ItemStruct, LitStr, Path, Result, Token,
    Type, Visibility, braced, parenthesized,
};

/// `members! { pub struct Name { pub member: Option<Type> as "reader", } .. }`.
pub(crate) struct Members(pub(crate) Vec<ItemStruct>);

impl Parse for Members {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut structs = Vec::new();
        while !input.is_empty() {
            let attrs = input.call(Attribute::parse_outer)?;
            let (vis, struct_token, ident) = (input.parse()?, input.parse()?, input.parse()?);
            let (content, mut named);
            let brace_token = braced!(content in input);
            named = Punctuated::new();
            while !content.is_empty() {
                let mut field = Field::parse_named(&content)?;
                let mut add = |attr: &str| -> Result<()> {
                    field.attrs.extend(Attribute::parse_outer.parse_str(attr)?);
                    Ok(())
                };
                if matches!(&field.ty, Type::Path(it) if it.path.segments[0].ident == "Option") {
                    add("#[serde(skip_serializing_if = \"Option::is_none\")]")?;
                }
                if content.parse::<Option<Token![as]>>()?.is_some() {
                    let reader: LitStr = content.parse()?;
                    let reader = reader.value();
                    add(&format!("#[serde(deserialize_with = {reader:?})]"))?;
                }
                named.push(field);
                content.parse::<Option<Token![,]>>()?;
            }
            structs.push(ItemStruct {
                attrs,
                vis,
                struct_token,
                ident,
                generics: syn::Generics::default(),
                fields: Fields::Named(FieldsNamed { brace_token, named }),
                semi_token: None,
            });
        }
        Ok(Self(structs))
    }
}

/// `words! { pub enum Name { "word" => Kind, .. => Other, } }`.
pub(crate) struct Words {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) words: Vec<(Vec<Attribute>, LitStr)>,
    /// Whether other words are allowed.
    pub(crate) is_open: bool,
}

impl Parse for Words {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        input.parse::<Token![enum]>()?;
        let name = input.parse()?;
        let members;
        braced!(members in input);
        let mut words = Vec::new();
        let mut is_open = false;
        while !members.is_empty() {
            let attrs = members.call(Attribute::parse_outer)?;
            if members.parse::<Option<Token![..]>>()?.is_some() {
                is_open = true;
            } else {
                words.push((attrs, members.parse()?));
            }
            members.parse::<Token![=>]>()?;
            members.parse::<Ident>()?;
            members.parse::<Token![,]>()?;
        }
        Ok(Self {
            attrs,
            name,
            words,
            is_open,
        })
    }
}

/// What `tagged!` declares.
pub(crate) enum Tagged {
    Enum(TaggedEnum),
    Struct(TaggedStruct),
}

/// `tagged! { enum Name by "tag" in "content" { .. } }`.
pub(crate) struct TaggedEnum {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) tag: String,
    pub(crate) content: Option<String>,
    pub(crate) variants: Vec<Variant>,
}

/// `"tag" => Kind(Type) in "member" or Unknown = written`.
pub(crate) struct Variant {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) tag: String,
    pub(crate) name: Ident,
    pub(crate) of: Option<Type>,
    /// The only member of the content.
    pub(crate) member: Option<String>,
    /// Whether content is written for a tag without content.
    pub(crate) is_written: bool,
}

impl Parse for Variant {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let tag = input.parse::<LitStr>()?.value();
        input.parse::<Token![=>]>()?;
        let name = input.parse()?;
        let mut variant = Self {
            attrs,
            tag,
            name,
            of: None,
            member: None,
            is_written: false,
        };
        if input.peek(syn::token::Paren) {
            let of;
            parenthesized!(of in input);
            variant.of = Some(of.parse()?);
        }
        if input.parse::<Option<Token![in]>>()?.is_some() {
            input.call(Attribute::parse_outer)?;
            variant.member = Some(input.parse::<LitStr>()?.value());
        }
        if input.peek(Ident) {
            // `or Unknown`
            input.parse::<Ident>()?;
            input.parse::<Ident>()?;
        }
        if input.parse::<Option<Token![=]>>()?.is_some() {
            input.parse::<Expr>()?;
            variant.is_written = true;
        }
        Ok(variant)
    }
}

/// `tagged! { struct Name { "member" => field: Type as read, .. => body: Body, } then check }`.
pub(crate) struct TaggedStruct {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) name: Ident,
    pub(crate) members: Vec<Member>,
}

/// A member, or the enum, which has no name.
pub(crate) struct Member {
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) name: Option<String>,
    pub(crate) of: Type,
}

impl Parse for Member {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let name = if input.parse::<Option<Token![..]>>()?.is_some() {
            None
        } else {
            Some(input.parse::<LitStr>()?.value())
        };
        input.parse::<Token![=>]>()?;
        input.parse::<Visibility>()?;
        input.parse::<Ident>()?;
        input.parse::<Token![:]>()?;
        let of = input.parse()?;
        if input.parse::<Option<Token![as]>>()?.is_some() {
            input.parse::<Path>()?;
        }
        Ok(Self { attrs, name, of })
    }
}

impl Parse for Tagged {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        input.parse::<Visibility>()?;
        if input.parse::<Option<Token![struct]>>()?.is_some() {
            let name = input.parse()?;
            let members;
            braced!(members in input);
            let members = Punctuated::<Member, Token![,]>::parse_terminated(&members)?;
            if input.peek(Ident) {
                // `then check`
                input.parse::<Ident>()?;
                input.parse::<Path>()?;
            }
            let members = members.into_iter().collect();
            return Ok(Self::Struct(TaggedStruct {
                attrs,
                name,
                members,
            }));
        }
        input.parse::<Token![enum]>()?;
        let name = input.parse()?;
        // `by "tag"`
        input.parse::<Ident>()?;
        let tag = input.parse::<LitStr>()?.value();
        let content = match input.parse::<Option<Token![in]>>()? {
            Some(_) => Some(input.parse::<LitStr>()?.value()),
            None => None,
        };
        let variants;
        braced!(variants in input);
        let variants = Punctuated::<Variant, Token![,]>::parse_terminated(&variants)?;
        Ok(Self::Enum(TaggedEnum {
            attrs,
            name,
            tag,
            content,
            variants: variants.into_iter().collect(),
        }))
    }
}
