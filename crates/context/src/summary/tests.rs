use proptest::prelude::*;

use super::{StructureSummarizer, Summarizer};
use contextweaver_core::text::Estimator;

fn shown(text: &str, cap: usize) -> String {
    StructureSummarizer.summarize(text, "text/plain", cap, Estimator::Cl100kBase)
}

fn orders() -> String {
    let rows: Vec<String> = (0..90)
        .map(|at| {
            let state = if at % 3 == 0 { "paid" } else { "new" };
            let note = if at % 9 == 0 { "null".to_owned() } else { format!("\"note {}\"", at % 4) };
            format!(
                "{{\"id\": {at}, \"state\": \"{state}\", \"price\": {}.{}5, \"on\": \"2025-01-{:02}\", \"note\": {note}}}",
                at * 7 % 31,
                at % 10,
                at % 28 + 1
            )
        })
        .collect();
    format!("[{}]", rows.join(", "))
}

#[test]
fn rows_are_told_by_their_columns() {
    insta::assert_snapshot!(shown(&orders(), 150), @r#"
    90 rows, 5 columns: id, state, price, on, note
    first row: id=0 state=paid price=0.05 on=2025-01-01 note=null
    last row: id=89 state=new price=3.95 on=2025-01-06 note="note 1"
    id: min 0 max 89 distinct 90
    state: distinct 2 (new ×60, paid ×30)
    price: min 0.05 max 30.45 sum 1389 distinct 90
    on: distinct 28 min 2025-01-01 max 2025-01-28
    note: distinct 4
    "#);
}

#[test]
fn rows_inside_an_object_take_their_names_from_beside() {
    let rows: Vec<String> = (0..80).map(|at| format!("[{at}, \"n{at}\", {}]", at % 3)).collect();
    let text = format!(
        "{{\"success\": true, \"columns\": [\"id\", \"name\", \"group\"], \"rows\": [{}], \"rowCount\": 80}}",
        rows.join(",\n")
    );
    insta::assert_snapshot!(shown(&text, 130), @r"
    object, 4 keys: success, columns, rows, rowCount
    245 values, depth 3
    success: true
    rowCount: 80
    rows: 80 rows, 3 columns: id, name, group
    rows: first row: id=0 name=n0 group=0
    rows: last row: id=79 name=n79 group=1
    id: min 0 max 79 distinct 80
    name: distinct 80
    group: min 0 max 2 sum 79 distinct 3 (0 ×27, 1 ×27, 2 ×26)
    ");
}

#[test]
fn trees_are_told_on_all_levels() {
    let leaf = |name: &str| format!("{{\"name\": \"{name}\", \"type\": \"file\"}}");
    let folder = |name: &str, inside: String| {
        format!("{{\"name\": \"{name}\", \"type\": \"directory\", \"children\": [{inside}]}}")
    };
    let many = |count: usize| (0..count).map(|at| leaf(&format!("file{at}.rs"))).collect::<Vec<_>>().join(",");
    let text = format!(
        "[{},{},{}]",
        leaf("lib.rs"),
        folder("src", format!("{},{}", many(20), folder("deep", many(5)))),
        leaf("z.rs")
    );
    insta::assert_snapshot!(shown(&text, 220), @r#"
    58 values, depth 6
    3 rows, 3 columns: name, type, children
    first row: {"name": "lib.rs", "type": "file"}
    last row: {"name": "z.rs", "type": "file"}
    name: distinct 3 alphabetically lib.rs to z.rs
    on all levels: 29 objects, type (file ×27, directory ×2)
    number of children: src 21 (26 on all levels)
    names by ending: .rs 27
    type: distinct 2 alphabetically directory to file
    children: 2 arrays of 5–21 items, 26 in all missing 1
    children[*].name: distinct 21 alphabetically deep to file9.rs
    children[*].type: distinct 2 (file ×25, directory ×1)
    name: lib.rs, src, z.rs
    [1].children[*].name: file0.rs, file1.rs, file2.rs, file3.rs, file4.rs, file5.rs, file6.rs, … +14
    "#);
}

#[test]
fn statistics_are_those_of_the_table_that_they_stand_beside() {
    use serde_json::json;
    let numbers = |from: usize| (from..from + 40).collect::<Vec<_>>();
    let rows = |from: usize| numbers(from).into_iter().map(|n| json!({"n": n, "word": "w"})).collect::<Vec<_>>();
    for (value, said) in [
        (
            json!([{"rows": rows(0)}, {"rows": rows(1000)}]),
            ["[0].rows: n: min 0 max 39 sum 780 ", "[1].rows: n: min 1000"],
        ),
        (json!({"parts": [rows(0), rows(1000)]}), ["parts[0]: n: min 0 max 39 sum 780 ", "parts[1]: n: min 1000"]),
        (
            json!({"children": [{"children": rows(0)}, {"children": rows(1000)}]}),
            ["children[0].children: n: min 0 max 39 sum 780 ", "children[1].children: n: min 1000"],
        ),
    ] {
        let told = shown(&value.to_string(), 600);
        let is_said = |said: &&str| told.lines().any(|line| line.starts_with(said));
        assert!(said.iter().all(is_said), "{said:?}: {told}");
    }
}

#[test]
fn objects_tell_their_shape_beside_beginning_and_end() {
    let labels: Vec<String> = (0..60).map(|at| format!("\"label {at}\"")).collect();
    let text = format!(
        "Error calling tool 'x': {{\"error\": {{\"code\": 429, \"message\": \"rate limit exceeded\"}}, \"retry\": null, \"data\": {{\"limits\": {{\"cpu\": \"500m\", \"memory\": 2}}, \"labels\": [{}], \"text\": \"{}\"}}}}",
        labels.join(", "),
        "word ".repeat(60)
    );
    insta::assert_snapshot!(shown(&text, 200), @r#"
    Error calling tool 'x':
    object, 3 keys: error, retry, data
    retry: null
    {"error": {"code": 429, "message": "rate limit exceeded"}, "retry": null, "data": {"limits": {"cpu": "500m", "memory": 2}, "labels": ["label 0", "label 1", "label 2", "label 3", "label 4", "label 5", "label 6", "label 7", "label
    …
    55", "label 56", "label 57", "label 58", "label 59"], "text": "word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word "}}
    "#);
}

#[test]
fn a_table_that_is_a_small_part_of_a_tree_does_not_replace_it() {
    let steps: Vec<String> =
        (0..9).map(|at| format!("{{\n \"name\": \"step {at}\",\n \"seconds\": {at}\n }}")).collect();
    let rest: Vec<String> = (0..60).map(|at| format!("\"key{at}\": {{\n  \"on\": {}\n }}", at % 7)).collect();
    let text = format!("{{\n \"steps\": [{}],\n {}\n}}", steps.join(",\n "), rest.join(",\n "));
    let told = shown(&text, 150);
    let (shape, rest) = told.split_once('\n').unwrap();
    assert!(shape.starts_with("object, 61 keys"), "{told}");
    assert!(rest.contains("{ \"steps\": [{ \"name\": \"step 0\", \"seconds\": 0 }, {"), "{told}");
    assert!(rest.ends_with("\"key59\": { \"on\": 3 } }"), "{told}");
}

#[test]
fn several_tables_together_are_told_like_one() {
    let rows = |count: usize, row: &dyn Fn(usize) -> String| (0..count).map(row).collect::<Vec<_>>().join(", ");
    let users = rows(60, &|at| format!("{{\"id\": {at}, \"email\": \"u{at}@x.org\", \"active\": {}}}", at != 41));
    let audit = rows(80, &|at| format!("{{\"n\": {at}, \"what\": \"{}\"}}", if at == 9 { "delete" } else { "login" }));
    let text = format!(
        "{{\"data\": {{\"users\": [{users}]}}, \"audit\": [{audit}], \"errors\": [{{\"message\": \"slow\"}}]}}"
    );
    insta::assert_snapshot!(shown(&text, 300), @r#"
    object, 3 keys: data, audit, errors
    341 values, depth 4
    data: 1 key: users
    errors[0]: 1 key: message
    errors[0].message: slow
    data.users: 60 rows, 3 columns: id, email, active
    data.users: first row: {"id": 0, "email": "u0@x.org", "active": true}
    $.data.users[29]: id=29 email=u29@x.org active=true
    $.data.users[41]: active=false email=u41@x.org id=41
    data.users: last row: {"id": 59, "email": "u59@x.org", "active": true}
    data.users: id: min 0 max 59 distinct 60
    data.users: email: distinct 60
    data.users: active: distinct 2 (true ×59, false ×1)
    audit: 80 rows, 2 columns: n, what
    audit: first row: {"n": 0, "what": "login"}
    audit: row 9: what=delete n=9
    audit: last row: {"n": 79, "what": "login"}
    audit: n: min 0 max 79 sum 3160 distinct 80
    audit: what: distinct 2 (login ×79, delete ×1)
    "#);
    // Rows that are too few are told by their beginning and end.
    let few: Vec<String> = "abcdef"
        .chars()
        .map(|key| format!("\"{key}\": [{}]", rows(7, &|at| format!("{{\"n\": \"{key}{at}\"}}"))))
        .collect();
    let told = shown(&format!("{{{}}}", few.join(", ")), 60);
    assert!(told.contains("{\"a\": [{\"n\": \"a0\"}"), "{told}");
}

#[test]
fn a_list_that_is_not_shown_whole_says_of_how_many_it_is() {
    let items = |count: usize| {
        (0..count).map(|at| format!("\"item-{at} of a list of long items\"")).collect::<Vec<_>>().join(", ")
    };
    // How the list begins, and how many entries it shows and leaves out.
    let list = |text: &str, cap: usize| {
        let told = shown(text, cap);
        let (line, rest) = told.lines().find_map(|line| line.rsplit_once("… +")).unwrap_or((&told, "0"));
        let entries = line.matches("item-").count() + rest.parse::<usize>().unwrap_or(0);
        format!("{}{entries}", line.split("\"item").next().unwrap_or_default())
    };
    let cases = [items(300), items(100)].map(|items| format!("[{items}]"));
    let inner = format!("{{\"list\": [{}]}}", items(150));
    insta::assert_snapshot!(cases.map(|text| list(&text, 700)).join("\n") + "\n" + &list(&inner, 1_300), @r"
    items, first 100: 100
    items: 100
    list: items, first 100: 100
    ");
}

#[test]
fn an_unusual_value_below_a_list_has_a_name_and_a_row() {
    let rows: Vec<String> = (0..40)
        .map(|at| {
            let state = if at == 21 { "stopped" } else { "running" };
            format!(
                "{{\"Instances\": [{{\"InstanceId\": \"i-{at}\", \"State\": {{\"Code\": 16, \"Name\": \"{state}\"}}, \"Tags\": [{{\"Key\": \"Name\", \"Value\": \"web{at}\"}}]}}]}}"
            )
        })
        .collect();
    let told = shown(&format!("{{\"Reservations\": [{}]}}", rows.join(", ")), 200);
    let row = told.lines().find(|line| line.contains("row 21"));
    insta::assert_snapshot!(row.unwrap_or(&told), @"Reservations: row 21: State.Name=stopped InstanceId=i-21 Tags[*].Value=web21");
}

#[test]
fn texts_inside_strings_are_told_by_what_they_are() {
    let rows: Vec<String> = (0..200).map(|at| format!("{at},{}", at * at)).collect();
    let text =
        serde_json::json!({ "path": "squares.csv", "content": format!("n,square\n{}\n", rows.join("\n")) }).to_string();
    insta::assert_snapshot!(shown(&text, 60), @r"
    object, 2 keys: path, content
    path: squares.csv
    content: text of 1753 characters
    200 rows, 2 columns: n, square
    first row: n=0 square=0
    last row: n=199 square=39601
    ");
}

#[test]
fn tables_are_found_in_every_notation() {
    let rows = |separator: &str, begin: &str, end: &str| -> String {
        (0..60)
            .map(|at| format!("{begin}{at:<6}{separator}{:<8}{separator}{:<6}{end}\n", format!("name{at}"), at * 2))
            .collect()
    };
    let cases = [
        format!("id,name,total\n{}", rows(",", "", "")),
        format!("id\tname\ttotal\n{}", rows("\t", "", "")),
        format!("# Result\n\n| id | name | total |\n|---|---|---|\n{}", rows(" | ", "| ", " |")),
        format!(" id | name | total\n----+------+------\n{}(60 rows)\n", rows(" | ", " ", "")),
        format!("ID      NAME      TOTAL\n{}", rows("  ", "", "")),
    ];
    let heads: Vec<String> = cases
        .iter()
        .map(|text| {
            shown(text, 300)
                .lines()
                .filter(|line| line.contains("60 rows,") || line.starts_with("total") || line.starts_with("TOTAL"))
                .collect::<Vec<_>>()
                .join("; ")
        })
        .collect();
    insta::assert_snapshot!(heads.join("\n"), @r"
    60 rows, 3 columns: id, name, total; total: min 0 max 118 sum 3540 distinct 60
    60 rows, 3 columns: id, name, total; total: min 0 max 118 sum 3540 distinct 60
    60 rows, 3 columns: id, name, total; total: min 0 max 118 sum 3540 distinct 60
    60 rows, 3 columns: id, name, total; total: min 0 max 118 sum 3540 distinct 60
    60 rows, 3 columns: ID, NAME, TOTAL; TOTAL: min 0 max 118 sum 3540 distinct 60
    ");
    let prose = "Dear all, thank you.\nIt was good, really, we mean it.\nSo long, and thanks.\nYours, A\n".repeat(40);
    assert!(!shown(&prose, 300).contains(" columns"), "{}", shown(&prose, 300));
}

/// How many rows and columns a summary says a text has; its first line otherwise.
fn size(text: &str) -> String {
    let told = shown(text, 100);
    let size = told.lines().find(|line| line.contains(" rows, ")).or_else(|| told.lines().next());
    size.unwrap_or_default().to_owned()
}

#[test]
fn every_row_of_a_table_counts() {
    let lines = |head: &str, line: &dyn Fn(usize) -> String| {
        (0..200).fold(format!("{head}\n"), |text, at| text + &line(at) + "\n")
    };
    let cases = [
        // Of the last cells two in three are empty, then of the first.
        (
            lines(" id | at\n----+----", &|at| format!(" {at} | {}", if at % 3 == 0 { "x" } else { "" })),
            "200 rows, 2 columns: id, at",
        ),
        (
            lines(" at | id\n----+----", &|at| format!(" {} | {at}", if at % 3 == 0 { "x" } else { "" })),
            "200 rows, 2 columns: at, id",
        ),
        (
            lines("| a | b |\n|---|---|", &|at| format!("| {at} | x {} y |", if at == 30 { "\\|" } else { "" })),
            "200 rows, 2 columns: a, b",
        ),
        (
            lines(" a | b\n---+---", &|at| format!(" {at} | x {} y", if at == 30 { "|" } else { "" })),
            "200 rows, 2 columns: a, b",
        ),
        (
            format!(
                "-------\n| Title |\n+--+--+\n{}+--+--+\n",
                lines("| a | b |\n+--+--+", &|at| format!("| {at} | x |"))
            ),
            "200 rows, 2 columns: a, b",
        ),
        // The first record is one like those below it.
        (
            lines("-1,anna,ok,2026-01-01", &|at| format!("{at},n{at},ok,2026-01-01")),
            "201 rows, 4 columns: column 1, column 2, column 3, column 4",
        ),
        (lines("1.5G\t./all", &|at| format!("{}M\t./d{at}", at + 1)), "201 rows, 2 columns: column 1, column 2"),
        (lines("PR\tOPEN", &|at| format!("n{at}\tOPEN")), "201 rows, 2 columns: column 1, column 2"),
        // Years, numbers in a row and names with a digit are names.
        (lines("place,2024,2025", &|at| format!("p{at},{at},{at}")), "200 rows, 3 columns: place, 2024, 2025"),
        (lines(",0,1,2", &|at| format!("p{at},{at},{at},{at}")), "200 rows, 4 columns: column 1, 0, 1, 2"),
        (lines("place,1Q,2Q", &|at| format!("p{at},{at},{at}")), "200 rows, 3 columns: place, 1Q, 2Q"),
        // A quote that nothing closes is text; one that is closed is not.
        (
            lines("id\ttitle", &|at| format!("{at}\t{}text", if at == 70 { "\"" } else { "" })),
            "200 rows, 2 columns: id, title",
        ),
        (lines("id,title", &|at| format!("{at},\"a, b\nand c\"")), "200 rows, 2 columns: id, title"),
        // No tables: messages with their times, of several services, and several tables of Markdown.
        (
            lines("Nov  1 00:00:00 web1 systemd[1]: Started", &|at| {
                format!("Nov  1 00:00:{:02} web1 systemd[1]: Started {at}", at % 60)
            }),
            "log: 201 lines",
        ),
        (lines("web-1  | begins", &|at| format!("db-1   | line {at}")), "201 lines, "),
        (lines("", &|at| format!("\u{1b}[32m2026-11-01 10:00:{:02} INFO\u{1b}[0m a; b", at % 60)), "log: 201 lines"),
    ];
    for (text, expected) in cases {
        assert!(size(&text).starts_with(expected), "{}: {expected}\n{text}", size(&text));
    }
    let table =
        |rows: usize| (0..rows).fold("| a | b |\n|---|---|\n".to_owned(), |text, at| format!("{text}| {at} | x |\n"));
    let several = format!("# One\n\n{}\n# Two\n\n{}\n# Three\n\n{}", table(80), table(2), table(30));
    assert!(size(&several).starts_with("Markdown: "), "{}", size(&several));
}

#[test]
fn a_line_that_is_no_row_is_told_with_its_number() {
    let rows: String = (0..80).map(|at| format!("item-{at:<8} Ready     {at}\n")).collect();
    let text = format!(
        "NAME          STATUS    VALUE\n{}",
        rows.replace("item-50       Ready     50", "item-with-a-long-name-50 Failed 50")
    );
    let told = shown(&text, 200);
    assert!(
        told.contains("79 rows") && told.contains("line 51 is no row: item-with-a-long-name-50 Failed 50"),
        "{told}"
    );
}

#[test]
fn numbers_beside_texts_with_numbers_have_no_range() {
    let told = |restarts: &dyn Fn(usize) -> String| {
        let rows: String = (0..200).map(|at| format!("n{at},{}\n", restarts(at))).collect();
        let told = shown(&format!("name,restarts\n{rows}"), 300);
        told.lines().find(|line| line.starts_with("restarts:")).unwrap_or_default().to_owned()
    };
    let texts = told(&|at| if at % 4 == 0 { format!("{at} (5h ago)") } else { "0".to_owned() });
    assert!(texts.starts_with("restarts: mixed: 150 numbers, 50 texts;") && !texts.contains("sum"), "{texts}");
    let codes = told(&|at| format!("{:05}", at * 499 + 130));
    assert!(!codes.contains("sum") && !codes.contains("min 1"), "{codes}");
    let hashes = told(&|at| if at % 9 == 0 { "84896e2".to_owned() } else { format!("a{at}c") });
    assert!(!hashes.contains("sum"), "{hashes}");
}

#[test]
fn a_name_of_several_words_is_one_column() {
    let images = table(
        "REPOSITORY          TAG             IMAGE ID       CREATED         SIZE",
        |at| {
            format!(
                "{:<19} {:<15} {:<14} {:<15} {}MB",
                format!("acme/app{at}"),
                "latest",
                format!("4f67c834{at:04}"),
                format!("{} weeks ago", at % 9 + 1),
                at + 100
            )
        },
        200,
    );
    insta::assert_snapshot!(images, @r#"
    60 rows, 5 columns: REPOSITORY, TAG, IMAGE ID, CREATED, SIZE
    first row: REPOSITORY=acme/app0 TAG=latest IMAGE ID=4f67c8340000 CREATED="1 weeks ago" SIZE=100MB
    last row: REPOSITORY=acme/app59 TAG=latest IMAGE ID=4f67c8340059 CREATED="6 weeks ago" SIZE=159MB
    REPOSITORY: distinct 60
    TAG: distinct 1 (latest ×60)
    IMAGE ID: distinct 60
    CREATED: distinct 9 (1 weeks ago ×7, 2 weeks ago ×7, 3 weeks ago ×7, 4 weeks ago ×7, 5 weeks ago ×7, 6 weeks ago ×7, 7 weeks ago ×6, 8 weeks ago ×6, …)
    SIZE: min 100MB max 159MB sum 7770 distinct 60
    "#);
}

/// The summary of a header and 60 rows.
fn table(header: &str, row: impl Fn(usize) -> String, cap: usize) -> String {
    let rows: String = (0..60).map(|at| format!("{}\n", row(at))).collect();
    shown(&format!("{header}\n{rows}"), cap)
}

#[test]
fn columns_under_right_aligned_names_are_a_table() {
    let processes = table(
        "USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND",
        |at| {
            let (busy, size) = if at == 33 { (99.9, 12_345_678) } else { (0.0, 10_000 + at) };
            format!(
                "root     {:>7} {busy:>4.1}  0.1 {size:>6} {:>5} ?        Ss   10:00   0:00 worker --number {at}",
                at + 900,
                at + 2_000
            )
        },
        300,
    );
    insta::assert_snapshot!(processes, @r#"
    60 rows, 11 columns: USER, PID, %CPU, %MEM, VSZ, RSS, TTY, STAT, START, TIME, COMMAND
    first row: USER=root PID=900 %CPU=0.0 %MEM=0.1 VSZ=10000 RSS=2000 TTY=? STAT=Ss START=10:00 TIME=0:00 COMMAND="worker --number 0"
    row 33: PID=933 %CPU=99.9 VSZ=12345678 RSS=2033 COMMAND="worker --number 33"
    last row: root | 959 | 0.0 | 0.1 | 10059 | 2059 | ? | Ss | 10:00 | 0:00 | worker --number 59
    USER: distinct 1 (root ×60)
    PID: 900..959 sum 55770
    %CPU: 0.0..99.9 sum 99.9
    %MEM: 0.1..0.1 sum 6
    VSZ: 10000..12345678 sum 12937415
    RSS: 2000..2059 sum 121770
    TTY: distinct 1 (? ×60)
    STAT: distinct 1 (Ss ×60)
    START: distinct 1 (10:00 ×60)
    TIME: distinct 1 (0:00 ×60)
    COMMAND: distinct 60
    "#);
    let disks = table(
        "Filesystem      Size  Used Avail Use% Mounted on",
        |at| {
            let [used, free, share] = if at == 17 { ["50G", "0", "100%"] } else { ["10G", "40G", "20%"] };
            format!("{:<15} {:>5} {used:>5} {free:>5} {share:>4} /mnt/disk{at}", format!("/dev/sd{at}"), "50G")
        },
        200,
    );
    insta::assert_snapshot!(disks, @r"
    60 rows, 6 columns: Filesystem, Size, Used, Avail, Use%, Mounted on
    first row: /dev/sd0 | 50G | 10G | 40G | 20% | /mnt/disk0
    row 17: Filesystem=/dev/sd17 Size=50G Used=50G Avail=0 Use%=100% Mounted on=/mnt/disk17
    last row: /dev/sd59 | 50G | 10G | 40G | 20% | /mnt/disk59
    Filesystem: distinct 60
    Size: 50G..50G sum 3000
    Used: 10G..50G sum 640
    Avail: mixed: 1 number, 59 texts; distinct 2 (40G ×59, 0 ×1 in row 17)
    Use%: 20%..100%
    Mounted on: distinct 60
    ");
    let pods = table(
        "NAME          CPU(cores)   MEMORY(bytes)",
        |at| format!("web-{at:03}       {:<12} {}Mi", format!("{}m", at % 7), at + 100),
        60,
    );
    insta::assert_snapshot!(pods, @r"
    60 rows, 3 columns: NAME, CPU(cores), MEMORY(bytes)
    first row: web-000 | 0m | 100Mi
    last row: web-059 | 3m | 159Mi
    CPU(cores): 0m..6m sum 174
    ");
}

#[test]
fn lines_that_stand_below_each_other_by_chance_are_no_table() {
    let tests: String = (0..80)
        .map(|at| match at {
            41 => "=== RUN   TestPay\n    pay_test.go:31: got 4, want 5\n--- FAIL: TestPay (0.01s)\n".to_owned(),
            _ => format!("=== RUN   TestA{at}\n--- PASS: TestA{at} (0.00s)\n"),
        })
        .chain(["FAIL\nexit status 1\nFAIL\texample.org/pay\t0.412s\n".to_owned()])
        .collect();
    insta::assert_snapshot!(shown(&tests, 120), @r"
    164 lines, 3581 characters
    === RUN   TestA0
    --- PASS: TestA0 (0.00s)
    === RUN   TestA1
    --- PASS: TestA1 (0.00s)
    … lines 4..82 alike
    === RUN   TestPay
        pay_test.go:31: got 4, want 5
    --- FAIL: TestPay (0.01s)
    … lines 85..161 alike
    FAIL
    exit status 1
    FAIL	example.org/pay	0.412s
    ");
    let torn: String = (0..60)
        .map(|at| format!("part{at:02}  value{at:02}\n"))
        .chain((0..9).map(|_| "a longer sentence\n".to_owned()))
        .collect();
    for text in [
        torn,
        "   Compiling crate0 v1.0.0\n".repeat(70),
        "The king went over the hill,\nand saw 20 things there\n".repeat(50),
    ] {
        assert!(!shown(&text, 100).contains(" columns"), "{}", shown(&text, 100));
    }
}

#[test]
fn a_row_with_a_rare_value_is_shown() {
    let told = table(
        "NAMESPACE  NAME        READY  STATUS",
        |at| {
            format!(
                "prod       web-{at:03}     {}",
                if at == 41 { "0/1    CrashLoopBackOff" } else { "1/1    Running" }
            )
        },
        160,
    );
    insta::assert_snapshot!(told, @r"
    60 rows, 4 columns: NAMESPACE, NAME, READY, STATUS
    first row: NAMESPACE=prod NAME=web-000 READY=1/1 STATUS=Running
    row 41: NAMESPACE=prod NAME=web-041 READY=0/1 STATUS=CrashLoopBackOff
    last row: NAMESPACE=prod NAME=web-059 READY=1/1 STATUS=Running
    NAMESPACE: distinct 1 (prod ×60)
    NAME: distinct 60
    READY: distinct 2 (1/1 ×59, 0/1 ×1 in row 41)
    STATUS: distinct 2 (Running ×59, CrashLoopBackOff ×1 in row 41)
    ");
}

#[test]
fn what_is_named_can_be_asked_for() {
    use crate::event::{Handle, Selector};
    use crate::view::{Bounds, Cursor, view};

    let text: String = (0..90)
        .map(|at| format!("2026-11-01 00:00:00 {}\n", if at == 41 { "ERROR full" } else { "INFO ok" }))
        .collect();
    let viewed = |selector: &str| {
        let selector: Selector = selector.parse().unwrap();
        view(&Handle::new("a"), text.as_bytes(), "text/plain", &selector, Cursor::default(), Bounds::default())
            .unwrap()
            .text
    };
    assert!(shown(&text, 100).contains("1 error, first (line 41): "), "{}", shown(&text, 100));
    assert_eq!(viewed("grep:ERROR"), "41: 2026-11-01 00:00:00 ERROR full");
    assert_eq!(viewed("lines:41"), "2026-11-01 00:00:00 ERROR full");
    let rows = format!(
        "id,state\n{}",
        (0..90).map(|at| format!("{at},{}\n", if at == 41 { "late" } else { "ok" })).collect::<String>()
    );
    assert!(shown(&rows, 100).contains("row 41: id=41 state=late"), "{}", shown(&rows, 100));
    let selector: Selector = "rows:41".parse().unwrap();
    let row =
        view(&Handle::new("a"), rows.as_bytes(), "text/csv", &selector, Cursor::default(), Bounds::default()).unwrap();
    assert_eq!(row.text, "id,state\n41,late");
}

#[test]
fn an_error_in_the_middle_is_said_beside_beginning_and_end() {
    let line = |at: usize| {
        format!("deploy {at} checkout {}\n", if at == 1234 { "failed: migration 0042 timed out" } else { "ok" })
    };
    let text: String = (1000..3000).map(line).collect();
    for cap in [100, 300, 600] {
        let told = shown(&text, cap);
        assert!(told.starts_with("2000 lines, "), "{told}");
        assert!(told.contains("deploy 1234 checkout failed: migration 0042 timed out\n… lines 235.."), "{told}");
        assert!(told.contains("\ndeploy 1000 checkout ok\n") && told.ends_with("\ndeploy 2999 checkout ok"), "{told}");
    }
}

#[test]
fn what_fits_is_shown_in_full() {
    let rows: Vec<String> =
        (0..12).map(|at| format!("  {{\n    \"id\": {at},\n    \"name\": \"a, b\",\n    \"ok\": true\n  }}")).collect();
    let text = format!("[\n{}\n]", rows.join(",\n"));
    insta::assert_snapshot!(shown(&text, 200), @r#"
    12 rows, 3 columns
    id: min 0 max 11 distinct 12
    name: distinct 1 (a, b ×12)
    ok: distinct 1 (true ×12)
    id,name,ok
    0,"a, b",true
    1,"a, b",true
    2,"a, b",true
    3,"a, b",true
    4,"a, b",true
    5,"a, b",true
    6,"a, b",true
    7,"a, b",true
    8,"a, b",true
    9,"a, b",true
    10,"a, b",true
    11,"a, b",true
    "#);
    assert_eq!(shown("a short text", 10), "a short text");
}

#[test]
fn rows_that_hold_objects_are_told_by_what_is_in_these() {
    let pod = |at: usize| {
        let bad = at == 17;
        let state = if bad {
            "{\"waiting\": {\"reason\": \"CrashLoopBackOff\", \"message\": \"back-off 5m0s restarting failed container\"}}"
        } else {
            "{\"running\": {\"startedAt\": \"2026-11-20T10:00:05Z\"}}"
        };
        format!(
            "{{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {{\"name\": \"web-{at}\", \"uid\": \"{:08x}\"}}, \"spec\": \
             {{\"nodeName\": \"node-{}\"}}, \"status\": {{\"phase\": \"Running\", \"conditions\": [{{\"type\": \"Ready\", \"status\": \
             \"{}\"}}], \"containerStatuses\": [{{\"name\": \"app\", \"restartCount\": {}, \"state\": {state}}}]}}}}",
            at * 7_919,
            at % 3,
            if bad { "False" } else { "True" },
            if bad { 17 } else { 0 },
        )
    };
    let pods: Vec<String> = (0..30).map(pod).collect();
    let text = format!("{{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [{}]}}", pods.join(", "));
    insta::assert_snapshot!(shown(&text, 300), @r#"
    object, 3 keys: apiVersion, kind, items
    333 values, depth 8
    apiVersion: v1
    kind: List
    on all levels: apiVersion (v1 ×31), kind (Pod ×30, List ×1)
    items: 30 rows, 5 columns: apiVersion, kind, metadata, spec, status
    items: first row: metadata.name=web-0 nodeName=node-0 conditions[*].status=True … +2
    items: row 17 (web-17): conditions[*].status=False restartCount=17 reason=CrashLoopBackOff message="back-off 5m0s restarting failed container" nodeName=node-2 uid=00020ddf
    items: last row: metadata.name=web-29 nodeName=node-2 conditions[*].status=True … +2
    items: everywhere the same: apiVersion=v1 kind=Pod phase=Running type=Ready containerStatuses[*].name=app
    spec.nodeName: distinct 3 (node-0 ×10, node-1 ×10, node-2 ×10)
    status.conditions[*].status: distinct 2 (True ×29, False ×1)
    status.containerStatuses[*].restartCount: 0..17 sum 17
    items: metadata.name: web-0, web-1, web-2, web-3, web-4, web-5, web-6, web-7, … +22
    "#);
}

#[test]
fn amounts_are_compared_as_numbers() {
    let table = |head: &str, delimiter: &str, amount: &dyn Fn(usize) -> String| {
        let rows: String = (0..60).map(|at| format!("n{at}{delimiter}{}\n", amount(at))).collect();
        let told = shown(&format!("name{delimiter}{head}\n{rows}"), 300);
        told.lines().last().unwrap_or_default().to_owned()
    };
    let told = [
        table("Betrag", ";", &|at| format!("{},{:02}", at * 31, at)),
        table("price", ",", &|at| {
            format!("\"${}{:03}.50\"", if at > 0 { format!("{at},") } else { String::new() }, at + 100)
        }),
        table("saldo", ";", &|at| format!("{}{}.{:03},00 €", if at % 2 == 0 { "-" } else { "" }, at + 1, at)),
        table("count", "\t", &|at| if at == 0 { "950".to_owned() } else { format!("{at},000") }),
        table("either", "\t", &|at| format!("{},000", at + 1)),
        table("rate", ",", &|at| format!("{at}%")),
        table("took", ",", &|at| format!("{at} ms")),
        table("mixed", ",", &|at| format!("{at} {}", if at == 9 { "s" } else { "ms" })),
        table("day", ",", &|at| format!("{:02}.01.2026", at % 28 + 1)),
        table("at", ",", &|at| format!("{:02}:{:02}", at % 24, at)),
        table("title", ",", &|at| format!("Result {at}")),
        table("animal", ",", &|at| format!("{}{at}", if at < 30 { "fox" } else { "crow" })),
    ];
    insta::assert_snapshot!(told.join("\n"), @r"
    Betrag: min 0,00 max 1829,59 sum 54887,7 distinct 60
    price: min $100.50 max $59,159.50 sum 1777800 distinct 60
    saldo: min -59.058,00 € max 60.059,00 € sum 30030 distinct 60
    count: min 950 max 59,000 sum 1770950 distinct 60
    either: min 1,000 max 60,000 distinct 60
    rate: min 0% max 59% distinct 60
    took: min 0 ms max 59 ms sum 1770 distinct 60
    mixed: distinct 60
    day: distinct 28
    at: distinct 60 min 00:00 max 23:47
    title: distinct 60
    animal: distinct 60 alphabetically crow30 to fox9
    ");
}

#[test]
fn rows_under_keys_are_told_like_a_list_beside_both_ends() {
    let row = |at: usize| {
        let severity = if at == 19 { "critical" } else { "low" };
        format!("\"pkg{at}\": {{\"severity\": \"{severity}\", \"via\": [\"pkg{}\"], \"range\": \"<1.{at}\"}}", at + 1)
    };
    let rows: Vec<String> = (0..60).map(row).collect();
    let text = format!("{{\"vulnerabilities\": {{{}}}, \"total\": 60}}", rows.join(", "));
    insta::assert_snapshot!(shown(&text, 200), @r#"
    object, 2 keys: vulnerabilities, total
    vulnerabilities: 60 keys (pkg0, pkg1, pkg2, pkg3, …) with a row each, 3 columns: severity, via, range
    vulnerabilities: pkg19: severity=critical range=<1.19 via=["pkg20"]
    {"vulnerabilities": {"pkg0": {"severity": "low", "via": ["pkg1"], "range": "<1.0"}, "pkg1": {"severity": "low", "via": ["pkg2"], "range": "<1.1"}, "pkg2": {"severity": "low",
    …
    "range": "<1.57"}, "pkg58": {"severity": "low", "via": ["pkg59"], "range": "<1.58"}, "pkg59": {"severity": "low", "via": ["pkg60"], "range": "<1.59"}}, "total": 60}
    "#);
}

#[test]
fn a_row_with_a_value_that_no_other_has_is_shown() {
    let row = |at: usize| {
        let (level, message) = if at == 71 { ("error", "card declined") } else { ("info", "handled") };
        format!("{{\"n\": {at}, \"level\": \"{level}\", \"msg\": \"{message} {at}\", \"ms\": {}}}\n", at * 3)
    };
    let lines: String = (0..90).map(row).collect();
    insta::assert_snapshot!(shown(&lines, 140), @r#"
    90 rows, 4 columns: n, level, msg, ms
    first row: n=0 level=info msg="handled 0" ms=0
    row 71: level=error msg="card declined 71" n=71 ms=213
    last row: n=89 level=info msg="handled 89" ms=267
    n: min 0 max 89 sum 4005 distinct 90
    level: distinct 2 (info ×89, error ×1)
    msg: distinct 90 alphabetically card declined 71 to handled 9
    ms: min 0 max 267 sum 12015 distinct 90
    "#);
    let rows: String = (0..90).map(|at| format!("{at},{}\n", if at == 71 { "failed" } else { "ok" })).collect();
    insta::assert_snapshot!(shown(&format!("n,state\n{rows}"), 60), @r"
    90 rows, 2 columns: n, state
    first row: n=0 state=ok
    row 71: n=71 state=failed
    last row: n=89 state=ok
    n: 0..89 sum 4005
    state: distinct 2
    ");
}

#[test]
fn what_went_wrong_deep_in_a_tree_is_said() {
    let mut text = "{\"status\": \"failed\", \"error\": \"quota exceeded\"}".to_owned();
    for level in 0..40 {
        text = format!("{{\"level\": {level}, \"child\": {text}, \"note\": \"xxxxxxxxxxxxxxx\"}}");
    }
    insta::assert_snapshot!(shown(&text, 150), @r#"
    object, 3 keys, depth 41: level, child, note
    ….child.child.child.child.child.error (depth 41): quota exceeded; status: failed
    {"level": 39, "child": {"level": 38, "child": {"level": 37, "child": {"level": 36, "child": {"level": 35, "child": {"level": 34, "child":
    …
    "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}, "note": "xxxxxxxxxxxxxxx"}
    "#);
}

#[test]
fn broken_data_is_told_as_far_as_it_goes() {
    let text = orders();
    insta::assert_snapshot!(shown(&text[..text.len() - 40], 100), @r#"
    incomplete: no literal: expected `,` or `}` at byte 7290 (line 1); what could be read:
    90 rows, 5 columns: id, state, price, on, note
    first row: id=0 state=paid price=0.05 on=2025-01-01 note=null
    last row: {"id":89,"state":"new","price":3.95}
    state: distinct 2
    note: distinct 4
    "#);
    let json_lines: String = (0..70).map(|at| format!("{{\"at\": {at}, \"level\": \"info\"}}\n")).collect();
    insta::assert_snapshot!(shown(&json_lines, 100), @r#"
    70 rows, 2 columns: at, level
    first row: {"at": 0, "level": "info"}
    row 17: at=17 level=info
    row 34: at=34 level=info
    row 51: at=51 level=info
    last row: {"at": 69, "level": "info"}
    at: min 0 max 69 sum 2415 distinct 70
    level: distinct 1 (info ×70)
    "#);
}

fn text() -> impl Strategy<Value = String> {
    let word = "(\\PC{0,6}|[\\[\\]{}(),:'\"|\\n\\t -]|\\\\ud83d|null|None|True|[0-9]{1,4}|1e-5|a,b\\n|\"k\":|\\| x \\| y \\|\\n)";
    prop_oneof![
        prop::collection::vec(word, 0..60).prop_map(|words| words.concat()),
        prop::collection::vec(("[a-z]{1,4}", "[a-z0-9.\"-]{0,9}", any::<i32>()), 0..30).prop_map(|rows| {
            let rows: Vec<String> = rows
                .iter()
                .map(|(key, text, number)| {
                    format!("{{{key:?}: {text:?}, 'n': {number}, 'deep': [{{'x': [{number}]}}]}}")
                })
                .collect();
            format!("lead [{}]", rows.join(", "))
        }),
        prop::collection::vec("[a-z]{0,3},[0-9]{0,3},[\"é a]{0,3}", 0..30).prop_map(|lines| lines.join("\n")),
        prop::collection::vec("[a-z]{1,3};-?[0-9]{1,3}[.,]?[0-9]{0,3}[.,]?[0-9]{0,2}[€%]?", 0..30)
            .prop_map(|lines| lines.join("\n")),
        prop::collection::vec(("[a-z]{1,4}", "(ok|failed|é\\{)", "(error|reason|status|n)"), 0..40).prop_map(|rows| {
            let rows: Vec<String> = rows
                .iter()
                .enumerate()
                .map(|(at, (name, state, key))| {
                    format!("\"{name}{at}\": {{\"meta\": {{\"name\": \"{name}\"}}, \"state\": \"{state}\", \"in\": [{{\"{key}\": \"{state}\"}}]}}")
                })
                .collect();
            format!("{{{}}}", rows.join(", "))
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_text_breaks_the_cap(text in text(), cap in 0_usize..300) {
        for estimator in Estimator::ALL {
            let summary = StructureSummarizer.summarize(&text, "application/json", cap, estimator);
            prop_assert!(estimator.count(&summary) <= cap);
            prop_assert_eq!(&summary, &StructureSummarizer.summarize(&text, "", cap, estimator));
        }
    }
}

#[test]
fn the_records_of_an_xml_document_are_rows() {
    let cases: String = (0..120)
        .map(|n| {
            let end = match n {
                33 => concat!(
                    "><failure message=\"expected 200 but got 503\" type=\"AssertionError\">at test_refund.py, line 88\n",
                    "assert response.status_code &lt; 300</failure></testcase>"
                ),
                _ => "/>",
            };
            let of = ["pay", "refund", "cart"][n % 3];
            format!("  <testcase classname=\"orders.test_{of}\" name=\"case_{n}\" time=\"0.0{}\"{end}\n", n % 9 + 1)
        })
        .collect();
    let text = format!(
        "<?xml version=\"1.0\"?>\n<testsuite name=\"pytest\" failures=\"1\" tests=\"120\">\n{cases}</testsuite>\n"
    );
    insta::assert_snapshot!(shown(&text, 220), @r#"
    XML, 124 lines, read as JSON:
    object, 1 key: testsuite
    testsuite: 4 keys: name, failures, tests, testcase
    testsuite.testcase: 120 rows, 4 columns: classname, name, time, failure
    testsuite.testcase: first row: classname=orders.test_pay name=case_0 time=0.01
    testsuite.testcase: row 33 (case_33): message="expected 200 but got 503" type=AssertionError #text="at test_refund.py, line 88\nassert response.status_code < 300" classname=orders.test_pay … +1
    testsuite.testcase: last row: orders.test_cart | case_119 | 0.03 | –
    testsuite.testcase: classname: distinct 3
    testsuite.testcase: name: distinct 120
    testsuite.testcase: time: 0.01..0.09 sum 5.91
    testsuite.testcase: failure: 1 object of 3 keys missing 119
    "#);
    assert_eq!(shown("<list><item>1</item></list>", 60), "<list><item>1</item></list>");
}

#[test]
fn long_keys_stay_apart() {
    let list = |count: usize, row: &dyn Fn(usize) -> String| {
        format!("[{}]", (0..count).map(row).collect::<Vec<_>>().join(", "))
    };
    let url = |end: &str| {
        format!("https://example.org/api/v2/organisations/acme/projects/{end}/environments/production/latest")
    };
    let class =
        |end: &str| format!("com.example.platform.services.billing.configuration.retention.policy.maximum.{end}");
    let words = |end: &str| format!("how satisfied were you with the answers of our support to questions about {end}");
    let endless = |end: &str| format!("{}{}{end}", "a".repeat(200), ".".repeat(300));
    for name in [&url as &dyn Fn(&str) -> String, &class, &words] {
        // Members of an object, columns, and rows with names.
        let numbers = (0..200).map(|at| at.to_string()).collect::<Vec<_>>().join(", ");
        let object = ["one", "two"].map(|end| format!("\"{}\": [{numbers}]", name(end))).join(", ");
        let both = |at: usize| format!("{{\"id\": {at}, \"{}\": 7, \"{}\": {}}}", name("one"), name("two"), at * at);
        let row = |at: usize| format!("\"{}\": {{\"id\": {at}, \"state\": \"s{}\"}}", name(&format!("n{at}")), at % 3);
        let named = (0..60).map(row).collect::<Vec<_>>().join(", ");
        for (text, ends) in [
            (format!("{{{object}}}"), ["one", "two"]),
            (list(120, &both), ["one", "two"]),
            (format!("{{{named}}}"), ["n0", "n59"]),
        ] {
            let told = shown(&text, 400);
            assert!(ends.iter().all(|end| told.contains(&name(end))) && !told.contains("characters)"), "{told}");
        }
    }
    // A key that is longer than names are is cut, and says so. Values stand below the column that they are in.
    let row = |at: usize| {
        let other = ["x", "y"][at % 2];
        format!("{{\"id\": {at}, \"{}\": \"{other}\", \"{}\": {at}}}", endless("one"), endless("two"))
    };
    let told = shown(&list(60, &row), 300);
    let cut = |end: &str| format!("{}…{}{end} (503 characters)", "a".repeat(40), ".".repeat(37));
    assert!(told.contains(&cut("one")) && told.contains(&cut("two")), "{told}");
    let alike = |at: usize| endless(&format!("{}{}", at, "b".repeat(40)));
    let row = |at: usize| format!("{{\"id\": {at}, \"{}\": \"left\", \"{}\": \"right\"}}", alike(1), alike(2));
    let told = shown(&list(60, &row), 300);
    assert!(!told.contains("right | –") && !told.contains("– | right"), "{told}");
}
