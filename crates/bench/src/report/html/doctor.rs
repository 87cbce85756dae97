//! What is wrong with the configuration of a gateway as a page: its servers, what a client would see of them, and what to do.

use std::fmt::Write as _;

use super::super::markup::escaped_xml;
use super::super::number::{MISSING, count, counted, percent};
use super::super::table::Table;
use super::{BARS, bar, page};
use contextweaver_core::catalog::Severity;
use contextweaver_core::text::grouped;
use contextweaver_gateway::{Confusable, Examination, Health, Outlook};

/// The severities, the worst first, with several findings of it and their heading.
const SEVERITIES: [(Severity, [&str; 2]); 3] = [
    (Severity::Error, ["errors", "Errors"]),
    (Severity::Warning, ["warnings", "Warnings"]),
    (Severity::Note, ["notes", "Notes"]),
];

/// The page of an examination: one file, without a script and without anything from outside. `config` is the name of what was
/// examined, `notes` are sentences on how.
#[must_use]
pub fn doctor(config: &str, found: &Examination, notes: &[String]) -> String {
    let title = format!("Diagnosis of {config}");
    let sums = SEVERITIES.map(|(severity, [many, _])| {
        let count = found.complaints.iter().filter(|complaint| complaint.severity == severity).count();
        counted(count, severity.name(), many)
    });
    let [errors, warnings, rest] = sums;
    let mut body = format!(
        "<header>\n<h1>Diagnosis of <bdi>{}</bdi></h1>\n<p class=\"verdict\"><strong>{errors}</strong>, {warnings}, \
         {rest}. {}</p>\n",
        escaped_xml(config),
        how_many_work(&found.upstreams),
    );
    if let Some(first) = found.complaints.first().filter(|complaint| complaint.severity == Severity::Error) {
        let _ = writeln!(
            body,
            "<p class=\"next\"><strong>First:</strong> <bdi>{}</bdi>: <bdi>{}</bdi>; <bdi>{}</bdi></p>",
            escaped_xml(&first.place),
            escaped_xml(&first.problem),
            escaped_xml(&first.remedy)
        );
    }
    for note in notes {
        let _ = writeln!(body, "<p class=\"note\"><bdi>{}</bdi></p>", escaped_xml(note));
    }
    body.push_str(
        "<nav aria-label=\"Sections\"><a href=\"#servers\">Servers</a> <a href=\"#client\">What a client sees</a> <a \
         href=\"#findings\">Findings</a> <a href=\"#confused\">Easily confused</a></nav>\n</header>\n<main id=\"main\">\n",
    );
    servers(&mut body, &found.upstreams);
    client(&mut body, found.outlook.as_ref());
    findings(&mut body, found);
    confused(&mut body, &found.confusable);
    body.push_str("</main>\n");
    page(&title, BARS, &body)
}

fn works(server: &Health) -> bool {
    server.version.is_some()
}

fn how_many_work(servers: &[Health]) -> String {
    let working = servers.iter().filter(|server| works(server)).count();
    match servers.len() {
        0 => "There is no server to ask.".to_owned(),
        all => format!(
            "{} of {} work{}.",
            count(working),
            counted(all, "server", "servers"),
            if working == 1 { "s" } else { "" }
        ),
    }
}

fn servers(body: &mut String, servers: &[Health]) {
    body.push_str("<h2 id=\"servers\">Servers</h2>\n");
    if servers.is_empty() {
        body.push_str("<p>None.</p>\n");
        return;
    }
    let titles = ["server", "state", "speaks", "started in ms", "tools", "resources", "prompts", "tokens"];
    let mut table = Table::new(titles).words(&["state", "speaks"]);
    // Long texts would squeeze the names.
    let mut reaches = Table::new(["server", "may reach"]).words(&["may reach"]);
    for server in servers {
        let Health { name, version, start_ms, tools, resources, prompts, tokens, reach } = server;
        let known = |number: String| if works(server) { number } else { MISSING.to_owned() };
        table.row([
            name.clone(),
            if works(server) { "works" } else { "does not work" }.to_owned(),
            version.clone().unwrap_or_else(|| MISSING.to_owned()),
            start_ms.map_or_else(|| MISSING.to_owned(), grouped),
            known(count(*tools)),
            known(count(*resources)),
            known(count(*prompts)),
            known(grouped(tokens)),
        ]);
        reaches.row([name.clone(), reach.to_string()]);
    }
    body.push_str(&table.html("The servers of the configuration"));
    body.push_str(&reaches.html("What they may reach on this machine"));
    let mut largest: Vec<&Health> = servers.iter().filter(|server| server.tokens > 0).collect();
    // A stable sort: among equals the order of the names stays.
    largest.sort_by_key(|server| std::cmp::Reverse(server.tokens));
    let Some(most) = largest.first().map(|server| server.tokens) else { return };
    body.push_str("<h3>Tokens of the definitions of their tools</h3>\n<ul class=\"bars\">\n");
    for server in largest {
        let share = 100.0 * server.tokens as f64 / most as f64;
        body.push_str(&bar(&server.name, "c0", &grouped(server.tokens), share));
    }
    body.push_str("</ul>\n<p class=\"note\">By cl100k_base. A whole bar is the largest server.</p>\n");
}

fn client(body: &mut String, outlook: Option<&Outlook>) {
    body.push_str("<h2 id=\"client\">What a client sees</h2>\n");
    let Some(outlook) = outlook else {
        body.push_str("<p>No tool could be read, so there is nothing to compare.</p>\n");
        return;
    };
    let Outlook { tools, listed_tools, tokens, listed_tokens, .. } = *outlook;
    let most = tokens.max(listed_tokens).max(1);
    let rows = [
        ("without the gateway".to_owned(), "c4", tools, tokens),
        (format!("mode {}", outlook.mode), "c0", listed_tools, listed_tokens),
    ];
    body.push_str("<ul class=\"bars\">\n");
    for (which, class, tools, tokens) in rows {
        let amount = format!("{} tokens", grouped(tokens));
        let name = format!("{which}: {}", counted(tools, "tool", "tools"));
        body.push_str(&bar(&name, class, &amount, 100.0 * tokens as f64 / most as f64));
    }
    body.push_str("</ul>\n");
    if listed_tokens > tokens {
        let _ = writeln!(
            body,
            "<p class=\"next\">These tools are so few that the gateway takes <strong>{} tokens more</strong>; <code>mode: \
             passthrough</code> adds none.</p>",
            grouped(listed_tokens - tokens)
        );
    } else if listed_tokens < tokens {
        let _ = writeln!(
            body,
            "<p>That saves <strong>{} tokens</strong> ({}) of every list of tools.</p>",
            grouped(tokens - listed_tokens),
            percent(outlook.saved_share())
        );
    }
    body.push_str(
        "<p class=\"note\">Tokens of definitions, by cl100k_base. What results of calls save comes on top: <code>contextweaver \
         mcp stats</code> counts it.</p>\n",
    );
}

fn findings(body: &mut String, found: &Examination) {
    body.push_str("<h2 id=\"findings\">Findings</h2>\n");
    if found.complaints.is_empty() {
        body.push_str("<p>None.</p>\n");
    }
    for (severity, [_, heading]) in SEVERITIES {
        let mut table = Table::new(["where", "what is wrong", "what to do"]).words(&["what is wrong", "what to do"]);
        for complaint in found.complaints.iter().filter(|complaint| complaint.severity == severity) {
            table.row([&*complaint.place, &complaint.problem, &complaint.remedy]);
        }
        if !table.is_empty() {
            let _ = write!(body, "<h3>{heading}</h3>\n{}", table.html(&format!("{heading}, and what to do")));
        }
    }
}

fn confused(body: &mut String, pairs: &[Confusable]) {
    body.push_str("<h2 id=\"confused\">Easily confused</h2>\n");
    if pairs.is_empty() {
        body.push_str("<p>No two tools have nearly the same words.</p>\n");
        return;
    }
    body.push_str("<p>List one of a pair in <code>exclude_tools</code> where the other is enough.</p>\n");
    let mut table = Table::new(["tool", "and", "alike"]).words(&["and"]);
    for Confusable { tool, with, similarity } in pairs {
        table.row([tool.clone(), with.clone(), percent(*similarity)]);
    }
    body.push_str(&table.html("Pairs of tools whose words are nearly the same"));
}

#[cfg(test)]
mod tests {
    use contextweaver_gateway::{Complaint, Mode, Reach};

    use super::*;

    const HOSTILE: &str = "<script>alert('&')</script>";

    fn complaint(severity: Severity, place: &str) -> Complaint {
        let (problem, remedy) = (format!("what {place} has"), format!("what {place} needs"));
        Complaint { severity, place: place.to_owned(), problem, remedy }
    }

    fn server(name: &str, version: Option<&str>, tokens: u64) -> Health {
        Health {
            name: name.to_owned(),
            version: version.map(str::to_owned),
            start_ms: version.map(|_| 1_234),
            tools: 2 * usize::from(version.is_some()),
            resources: 0,
            prompts: 0,
            tokens,
            reach: Reach::User,
        }
    }

    fn body(page: &str) -> &str {
        page.split_once("<body>\n").unwrap().1
    }

    #[test]
    fn a_diagnosis_is_a_page() {
        let found = Examination {
            upstreams: vec![
                server("notes", Some("2025-11-25"), 500),
                server("shop", None, 0),
                server("wiki", Some("2026-07-28"), 1_500),
            ],
            outlook: Some(Outlook {
                mode: Mode::Gateway,
                tools: 4,
                listed_tools: 3,
                tokens: 2_000,
                listed_tokens: 500,
            }),
            confusable: vec![Confusable {
                tool: "notes:find#00000000".to_owned(),
                with: "wiki:find#00000000".to_owned(),
                similarity: 0.987,
            }],
            complaints: vec![
                complaint(Severity::Error, "upstreams.shop"),
                complaint(Severity::Warning, "pins"),
                complaint(Severity::Note, "find"),
                complaint(Severity::Note, "read"),
            ],
        };
        let page = doctor("gateway.yaml", &found, &["from a client's file: SHOP_KEY".to_owned()]);
        insta::assert_snapshot!(body(&page), @r##"
        <a class="skip" href="#main">Skip to the report</a>
        <header>
        <h1>Diagnosis of <bdi>gateway.yaml</bdi></h1>
        <p class="verdict"><strong>1 error</strong>, 1 warning, 2 notes. 2 of 3 servers work.</p>
        <p class="next"><strong>First:</strong> <bdi>upstreams.shop</bdi>: <bdi>what upstreams.shop has</bdi>; <bdi>what upstreams.shop needs</bdi></p>
        <p class="note"><bdi>from a client&#39;s file: SHOP_KEY</bdi></p>
        <nav aria-label="Sections"><a href="#servers">Servers</a> <a href="#client">What a client sees</a> <a href="#findings">Findings</a> <a href="#confused">Easily confused</a></nav>
        </header>
        <main id="main">
        <h2 id="servers">Servers</h2>
        <div class="scroll" role="region" aria-label="The servers of the configuration" tabindex="0">
        <table class="plain">
        <caption>The servers of the configuration</caption>
        <thead><tr><th scope="col">server</th><th scope="col">state</th><th scope="col">speaks</th><th scope="col" class="n">started in ms</th><th scope="col" class="n">tools</th><th scope="col" class="n">resources</th><th scope="col" class="n">prompts</th><th scope="col" class="n">tokens</th></tr></thead>
        <tbody>
        <tr><th scope="row">notes</th><td>works</td><td>2025-11-25</td><td class="n">1,234</td><td class="n">2</td><td class="n">0</td><td class="n">0</td><td class="n">500</td></tr>
        <tr><th scope="row">shop</th><td>does not work</td><td>–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td><td class="n">–</td></tr>
        <tr><th scope="row">wiki</th><td>works</td><td>2026-07-28</td><td class="n">1,234</td><td class="n">2</td><td class="n">0</td><td class="n">0</td><td class="n">1,500</td></tr>
        </tbody>
        </table>
        </div>
        <div class="scroll" role="region" aria-label="What they may reach on this machine" tabindex="0">
        <table class="plain">
        <caption>What they may reach on this machine</caption>
        <thead><tr><th scope="col">server</th><th scope="col">may reach</th></tr></thead>
        <tbody>
        <tr><th scope="row">notes</th><td>not in a sandbox: it may do whatever the gateway&#39;s user may</td></tr>
        <tr><th scope="row">shop</th><td>not in a sandbox: it may do whatever the gateway&#39;s user may</td></tr>
        <tr><th scope="row">wiki</th><td>not in a sandbox: it may do whatever the gateway&#39;s user may</td></tr>
        </tbody>
        </table>
        </div>
        <h3>Tokens of the definitions of their tools</h3>
        <ul class="bars">
        <li><span class="name"><bdi>wiki</bdi></span><span class="n">1,500</span><span class="bar" aria-hidden="true"><span class="c0" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>notes</bdi></span><span class="n">500</span><span class="bar" aria-hidden="true"><span class="c0" style="width:33.3%"></span></span></li>
        </ul>
        <p class="note">By cl100k_base. A whole bar is the largest server.</p>
        <h2 id="client">What a client sees</h2>
        <ul class="bars">
        <li><span class="name"><bdi>without the gateway: 4 tools</bdi></span><span class="n">2,000 tokens</span><span class="bar" aria-hidden="true"><span class="c4" style="width:100.0%"></span></span></li>
        <li><span class="name"><bdi>mode gateway: 3 tools</bdi></span><span class="n">500 tokens</span><span class="bar" aria-hidden="true"><span class="c0" style="width:25.0%"></span></span></li>
        </ul>
        <p>That saves <strong>1,500 tokens</strong> (75.0 %) of every list of tools.</p>
        <p class="note">Tokens of definitions, by cl100k_base. What results of calls save comes on top: <code>contextweaver mcp stats</code> counts it.</p>
        <h2 id="findings">Findings</h2>
        <h3>Errors</h3>
        <div class="scroll" role="region" aria-label="Errors, and what to do" tabindex="0">
        <table class="plain">
        <caption>Errors, and what to do</caption>
        <thead><tr><th scope="col">where</th><th scope="col">what is wrong</th><th scope="col">what to do</th></tr></thead>
        <tbody>
        <tr><th scope="row">upstreams.shop</th><td>what upstreams.shop has</td><td>what upstreams.shop needs</td></tr>
        </tbody>
        </table>
        </div>
        <h3>Warnings</h3>
        <div class="scroll" role="region" aria-label="Warnings, and what to do" tabindex="0">
        <table class="plain">
        <caption>Warnings, and what to do</caption>
        <thead><tr><th scope="col">where</th><th scope="col">what is wrong</th><th scope="col">what to do</th></tr></thead>
        <tbody>
        <tr><th scope="row">pins</th><td>what pins has</td><td>what pins needs</td></tr>
        </tbody>
        </table>
        </div>
        <h3>Notes</h3>
        <div class="scroll" role="region" aria-label="Notes, and what to do" tabindex="0">
        <table class="plain">
        <caption>Notes, and what to do</caption>
        <thead><tr><th scope="col">where</th><th scope="col">what is wrong</th><th scope="col">what to do</th></tr></thead>
        <tbody>
        <tr><th scope="row">find</th><td>what find has</td><td>what find needs</td></tr>
        <tr><th scope="row">read</th><td>what read has</td><td>what read needs</td></tr>
        </tbody>
        </table>
        </div>
        <h2 id="confused">Easily confused</h2>
        <p>List one of a pair in <code>exclude_tools</code> where the other is enough.</p>
        <div class="scroll" role="region" aria-label="Pairs of tools whose words are nearly the same" tabindex="0">
        <table class="plain">
        <caption>Pairs of tools whose words are nearly the same</caption>
        <thead><tr><th scope="col">tool</th><th scope="col">and</th><th scope="col" class="n">alike</th></tr></thead>
        <tbody>
        <tr><th scope="row">notes:find#00000000</th><td>wiki:find#00000000</td><td class="n">98.7 %</td></tr>
        </tbody>
        </table>
        </div>
        </main>
        </body>
        </html>
        "##);
    }

    #[test]
    fn nothing_foreign_is_markup() {
        let found = Examination {
            upstreams: vec![server(HOSTILE, Some(HOSTILE), 1)],
            outlook: None,
            confusable: vec![Confusable { tool: HOSTILE.to_owned(), with: HOSTILE.to_owned(), similarity: 1.0 }],
            complaints: [Severity::Error, Severity::Warning, Severity::Note]
                .map(|severity| complaint(severity, HOSTILE))
                .to_vec(),
        };
        let page = doctor(HOSTILE, &found, &[HOSTILE.to_owned()]);
        assert!(!page.contains("<script") && !page.contains("('&')"), "{page}");
        let escaped = "&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";
        // Title and heading, note; name three times, protocol; first thing and three rows of findings with three cells each; a
        // pair.
        assert_eq!(page.matches(escaped).count(), 2 + 1 + 4 + 12 + 2, "{page}");
    }

    #[test]
    fn what_there_is_nothing_of_is_said() {
        let nothing =
            Examination { upstreams: Vec::new(), outlook: None, confusable: Vec::new(), complaints: Vec::new() };
        insta::assert_snapshot!(body(&doctor("gateway.yaml", &nothing, &[])), @r##"
        <a class="skip" href="#main">Skip to the report</a>
        <header>
        <h1>Diagnosis of <bdi>gateway.yaml</bdi></h1>
        <p class="verdict"><strong>0 errors</strong>, 0 warnings, 0 notes. There is no server to ask.</p>
        <nav aria-label="Sections"><a href="#servers">Servers</a> <a href="#client">What a client sees</a> <a href="#findings">Findings</a> <a href="#confused">Easily confused</a></nav>
        </header>
        <main id="main">
        <h2 id="servers">Servers</h2>
        <p>None.</p>
        <h2 id="client">What a client sees</h2>
        <p>No tool could be read, so there is nothing to compare.</p>
        <h2 id="findings">Findings</h2>
        <p>None.</p>
        <h2 id="confused">Easily confused</h2>
        <p>No two tools have nearly the same words.</p>
        </main>
        </body>
        </html>
        "##);
        for (tokens, listed_tokens, told) in [
            (37, 794, "the gateway takes <strong>757 tokens more</strong>"),
            (2_000, 500, "saves <strong>1,500 tokens</strong> (75.0 %)"),
            (10_000, 1, "(> 99.9 %)"),
            (37, 37, "<ul class=\"bars\">"),
            (0, 0, "width:0.0%"),
        ] {
            let outlook = Outlook { mode: Mode::Proxy, tools: 1, listed_tools: 3, tokens, listed_tokens };
            let page = doctor("x", &Examination { outlook: Some(outlook), ..nothing.clone() }, &[]);
            assert!(
                page.contains(told) && page.contains("mode proxy: 3 tools") && !page.contains("NaN"),
                "{told}: {page}"
            );
            assert_eq!(page.contains("<strong>757") || page.contains("That saves"), tokens != listed_tokens, "{page}");
        }
    }
}
