//! Float products in `#[cube]` functions: CubeCL and drivers contract one that feeds a sum, so that all are spelled in
//! `arithmetic.rs`. Float quotients and square roots: a device may round them otherwise, so that all are spelled in `quotient.rs`.

use super::{assert_excepted, sources};
use quote::ToTokens;
use std::collections::BTreeSet;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Generics, Item, Pat, ReturnType, Type};

/// Products that feed no sum, by function.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("binary: a * b", "the result of each operation of a fused run passes through `opaque`"),
    ("step: chain * next", "a chain of products has no sum"),
    ("combine: left * right", "a chain of products has no sum"),
    ("step: a * b", "of integers: floats take the other branch, which is `multiply_add`"),
];

/// The operators and functions that give a quotient or a root, by what they are called.
const DIVIDING_METHODS: [&str; 3] = ["sqrt", "recip", "inverse_sqrt"];

/// What the declarations of all files say of types.
#[derive(Default)]
struct Declared {
    /// Functions that give floats.
    functions: BTreeSet<String>,
    /// Fields that are floats, with the family that declares them.
    fields: BTreeSet<(String, String)>,
    /// The family of the file that is read.
    family: String,
}

/// Finds the float products of `#[cube]` functions, and the float quotients and square roots.
struct Products<'a> {
    declared: &'a Declared,
    family: String,
    function: String,
    /// Type parameters that may be a float.
    types: BTreeSet<String>,
    /// Variables that are floats, or hold them.
    variables: BTreeSet<String>,
    found: Vec<String>,
    quotients: Vec<String>,
}

fn is_cube(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cube"))
}

/// The type parameters that may be a float: a numeric one may.
fn float_parameters(generics: &Generics) -> BTreeSet<String> {
    let parameters = generics.type_params().filter(|parameter| {
        let bounds = parameter.bounds.to_token_stream().to_string();
        ["Float", "Numeric", "CubePrimitive"].iter().any(|bound| bounds.contains(bound))
    });
    parameters.map(|parameter| parameter.ident.to_string()).collect()
}

/// Whether a type is a float, or holds floats, as in `&[F]` and `Vector<F, N>`.
fn is_float(kind: &Type, parameters: &BTreeSet<String>) -> bool {
    let words = kind.to_token_stream().to_string();
    let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '_');
    words.any(|word| matches!(word, "f16" | "bf16" | "f32" | "f64") || parameters.contains(word))
}

/// The first folder of a path, or the file.
fn family(path: &str) -> String {
    path.split('/').next().unwrap_or(path).to_owned()
}

impl Declared {
    fn of(files: &[(String, syn::File)]) -> Self {
        let mut declared = Self::default();
        for (path, file) in files {
            declared.family = family(path);
            declared.visit_file(file);
        }
        declared
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        if let (true, ReturnType::Type(_, kind)) = (is_cube(&function.attrs), &function.sig.output)
            && is_float(kind, &float_parameters(&function.sig.generics))
        {
            self.functions.insert(function.sig.ident.to_string());
        }
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        // What the host alone has is never in a kernel.
        let derived = item.attrs.iter().any(|attribute| attribute.to_token_stream().to_string().contains("Cube"));
        for field in
            item.fields.iter().filter(|field| derived && is_float(&field.ty, &float_parameters(&item.generics)))
        {
            self.fields.extend(field.ident.as_ref().map(|name| (self.family.clone(), name.to_string())));
        }
    }
}

impl Products<'_> {
    /// Products outside `arithmetic.rs`.
    fn of(files: &[(String, syn::File)]) -> Vec<(String, String)> {
        Self::outside("arithmetic.rs", files, |found| found.found)
    }

    /// Quotients and square roots outside `quotient.rs`.
    fn quotients_of(files: &[(String, syn::File)]) -> Vec<(String, String)> {
        Self::outside("quotient.rs", files, |found| found.quotients)
    }

    fn outside(
        home: &str,
        files: &[(String, syn::File)],
        wanted: fn(Products) -> Vec<String>,
    ) -> Vec<(String, String)> {
        let declared = Declared::of(files);
        let products = files.iter().filter(|(path, _)| path != home).flat_map(|(path, file)| {
            let none = BTreeSet::new;
            let function = String::new();
            let mut products = Products {
                declared: &declared,
                family: family(path),
                function,
                types: none(),
                variables: none(),
                found: vec![],
                quotients: vec![],
            };
            products.visit_file(file);
            wanted(products).into_iter().map(|found| (path.clone(), found))
        });
        products.collect()
    }

    fn enter(&mut self, signature: &syn::Signature, body: &syn::Block) {
        self.function = signature.ident.to_string();
        self.types = float_parameters(&signature.generics);
        self.variables.clear();
        for input in &signature.inputs {
            if let syn::FnArg::Typed(input) = input {
                self.bind(&input.pat, is_float(&input.ty, &self.types));
            }
        }
        self.visit_block(body);
    }

    /// Notes what a name stands for from here on.
    fn bind(&mut self, pattern: &Pat, float: bool) {
        match pattern {
            Pat::Ident(name) if float => drop(self.variables.insert(name.ident.to_string())),
            Pat::Ident(name) => drop(self.variables.remove(&name.ident.to_string())),
            Pat::Type(typed) => self.bind(&typed.pat, float),
            Pat::Tuple(parts) => parts.elems.iter().for_each(|part| self.bind(part, float)),
            _ => {}
        }
    }

    /// Whether an expression is a float, as far as its spelling tells.
    fn gives_float(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Paren(inner) => self.gives_float(&inner.expr),
            Expr::Unary(unary) => self.gives_float(&unary.expr),
            Expr::Reference(reference) => self.gives_float(&reference.expr),
            Expr::Index(index) => self.gives_float(&index.expr),
            Expr::Path(path) => path.path.get_ident().is_some_and(|name| self.variables.contains(&name.to_string())),
            Expr::Field(field) => match &field.member {
                syn::Member::Named(name) => self.declared.fields.contains(&(self.family.clone(), name.to_string())),
                syn::Member::Unnamed(_) => false,
            },
            Expr::Lit(literal) => matches!(literal.lit, syn::Lit::Float(_)),
            Expr::Cast(cast) => is_float(&cast.ty, &self.types),
            Expr::MethodCall(call) => match &call.turbofish {
                Some(types) => types
                    .args
                    .iter()
                    .any(|of| matches!(of, syn::GenericArgument::Type(of) if is_float(of, &self.types))),
                // A slice's shape and strides are integers.
                None => {
                    !["stride", "shape", "rank", "len", "size", "vector_size"].iter().any(|name| call.method == name)
                        && self.gives_float(&call.receiver)
                }
            },
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) => {
                    let last = path.path.segments.last().expect("a path has a segment").ident.to_string();
                    let first = &path.path.segments[0];
                    let of_type =
                        path.path.segments.len() > 1 && is_float(&Type::Verbatim(first.to_token_stream()), &self.types);
                    let is_function =
                        path.path.segments.len() == 1 || first.ident.to_string().starts_with(char::is_lowercase);
                    of_type
                        || is_function && self.declared.functions.contains(&last)
                        || ["fma", "select"].contains(&last.as_str()) && {
                            call.args.iter().any(|argument| self.gives_float(argument))
                        }
                }
                _ => false,
            },
            Expr::Binary(binary) => {
                let arithmetic = matches!(binary.op, BinOp::Add(_) | BinOp::Sub(_) | BinOp::Mul(_) | BinOp::Div(_));
                arithmetic && (self.gives_float(&binary.left) || self.gives_float(&binary.right))
            }
            Expr::If(branches) => {
                let tail = branches.then_branch.stmts.last();
                matches!(tail, Some(syn::Stmt::Expr(tail, None)) if self.gives_float(tail))
            }
            _ => false,
        }
    }
}

impl<'ast> Visit<'ast> for Products<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Fn(function) if is_cube(&function.attrs) => self.enter(&function.sig, &function.block),
            Item::Impl(block) if is_cube(&block.attrs) => {
                for item in &block.items {
                    if let syn::ImplItem::Fn(function) = item {
                        self.enter(&function.sig, &function.block);
                    }
                }
            }
            Item::Mod(module) => visit::visit_item_mod(self, module),
            _ => {}
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let typed = matches!(&local.pat, Pat::Type(typed) if is_float(&typed.ty, &self.types));
        let float = typed || local.init.as_ref().is_some_and(|init| self.gives_float(&init.expr));
        self.bind(&local.pat, float);
    }

    fn visit_expr_binary(&mut self, binary: &'ast syn::ExprBinary) {
        visit::visit_expr_binary(self, binary);
        let is_product = matches!(binary.op, BinOp::Mul(_) | BinOp::MulAssign(_));
        if is_product && (self.gives_float(&binary.left) || self.gives_float(&binary.right)) {
            self.found.push(format!("{}: {}", self.function, binary.to_token_stream()));
        }
        let is_quotient = matches!(binary.op, BinOp::Div(_) | BinOp::DivAssign(_));
        if is_quotient && (self.gives_float(&binary.left) || self.gives_float(&binary.right)) {
            self.quotients.push(format!("{}: {}", self.function, binary.to_token_stream()));
        }
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        if DIVIDING_METHODS.iter().any(|method| call.method == method) {
            self.quotients.push(format!("{}: {}", self.function, call.to_token_stream()));
        }
    }
}

#[test]
fn float_products_are_spelled_in_one_file() {
    let reason = "a float product is contracted with a sum that follows; use `multiply_add` or `multiply_rounded`";
    assert_excepted(reason, &Products::of(&sources("src")), EXCEPTIONS);
}

#[test]
fn float_quotients_and_roots_are_spelled_in_one_file() {
    let reason = "a device may round a quotient or a square root otherwise; use `divide` or `sqrt` of `quotient`";
    assert_excepted(reason, &Products::quotients_of(&sources("src")), &[]);
}

#[test]
fn the_rule_finds_float_quotients_and_no_others() {
    let found = |text: &str| {
        let file = syn::parse_str(text).expect("an example parses");
        Products::quotients_of(&[("example.rs".to_owned(), file)]).len()
    };
    assert_eq!(found("#[cube] fn f<F: Float>(a: F, b: F) -> F { a / b }"), 1);
    assert_eq!(found("#[cube] fn f<A: Numeric>(x: u32) -> A { let mut v = A::cast_from(x); v /= x; v }"), 1);
    assert_eq!(found("#[cube] fn f(x: f32) -> f32 { g(x.sqrt() + x.recip()) }"), 2);
    assert_eq!(found("#[cube] fn f<F: Float>(x: &[F], row: u32, width: u32) -> F { x[(row / width) as usize] }"), 0);
    assert_eq!(found("#[cube] fn f(x: f32) -> f32 { times(x, comptime!(1.0f32 / 256.0)) }"), 0);
    assert_eq!(found("fn host(a: f32, b: f32) -> f32 { (a / b).sqrt() }"), 0);
}

#[test]
fn the_rule_finds_float_products_and_no_others() {
    let found = |text: &str| {
        let file = syn::parse_str(text).expect("an example parses");
        Products::of(&[("example.rs".to_owned(), file)]).len()
    };
    assert_eq!(found("#[cube] fn f(a: f32, b: f32, c: f32) -> f32 { a * b + c }"), 1);
    assert_eq!(found("#[cube] fn f<F: Float>(x: &[F], at: u32) -> F { let v = x[at as usize]; c + v * v }"), 1);
    assert_eq!(found("#[cube] fn f<A: Numeric>(x: u32, y: u32) -> A { let mut v = A::cast_from(x); v *= y; v }"), 1);
    assert_eq!(found("#[cube] fn g() -> f32 { h() } #[cube] fn f(x: u32) { let y = 2 * g(); }"), 1);
    assert_eq!(
        found("#[derive(CubeType)] struct S { scale: f32 } #[cube] fn f(s: S, x: u32) -> f32 { x * s.scale }"),
        1
    );
    assert_eq!(
        found("#[cube] fn f<F: Float>(x: &[F], row: u32, width: u32) -> F { x[(row * width + 1) as usize] }"),
        0
    );
    assert_eq!(found("#[cube] fn f<F: Float>(x: &Tensor<F>, row: u32) -> u32 { row * x.stride(0) + 1 }"), 0);
    assert_eq!(found("fn host(a: f32, b: f32, c: f32) -> f32 { a * b + c }"), 0);
}
