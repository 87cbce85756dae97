//! The HTTP headers in which calls repeat arguments, as the definitions of tools ask for them.

use std::collections::BTreeMap;

use hyper::header::HeaderName;
use serde_json::Value;

/// The headers that repeat arguments, by the name under which a tool is called; most tools have none.
pub(crate) type ParamHeaders = BTreeMap<String, Vec<ParamHeader>>;

/// A header that repeats an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamHeader {
    /// The keys that lead to the argument.
    pub(crate) path: Vec<String>,
    /// The header that repeats it.
    pub(crate) header: HeaderName,
}

/// The headers that the definition of a tool asks for. A name that cannot be that of a header is ignored.
pub(crate) fn param_headers(definition: &str) -> Vec<ParamHeader> {
    const ANNOTATION: &str = "x-mcp-header";
    fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Vec<ParamHeader>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            path.push(name.clone());
            let header = property[ANNOTATION].as_str().filter(|header| !header.is_empty());
            let header = header.and_then(|header| format!("mcp-param-{header}").parse().ok());
            found.extend(header.map(|header| ParamHeader { path: path.clone(), header }));
            collect(property, path, found);
            path.pop();
        }
    }
    let mut found = Vec::new();
    if memchr::memmem::find(definition.as_bytes(), ANNOTATION.as_bytes()).is_some() {
        let definition: Value = serde_json::from_str(definition).unwrap_or_default();
        collect(&definition["inputSchema"], &mut Vec::new(), &mut found);
    }
    found
}
