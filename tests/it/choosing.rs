//! `bench eval --choose`: a program in the place of a model, in the loop of the cards.

use std::fs;

use serde_json::Value;

use crate::support::{Files, Run, TOOLS};

const QUERIES: &str = r#"{"id": "q1", "query": "open an issue", "relevant": ["create_issue"]}
{"id": "q2", "query": "send a letter", "relevant": ["send_mail"]}
{"id": "q3", "query": "delete the repository", "relevant": ["delete_repository"]}
{"id": "q4", "query": "nobody should get in", "relevant": ["list_issues"]}
{"id": "q5", "query": "a letter about pizza", "relevant": []}
{"id": "q6", "query": "xyzzy qwfpg", "relevant": ["list_issues"]}
"#;

/// A program by docs/engines.md: `$id` is the id of the request, `$first` that of the first card.
fn chooser(answer: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":"\(a[0-9]*\)"}}$/\1/p')
  first=$(printf '%s' "$line" | sed -n 's/.*"cards":\[{{"id":"\([^"]*\)".*/\1/p')
  case $line in
    *'"op":"hello"'*) echo '{{"ok":true,"name":"script","version":"1"}}' ;;
    *'"op":"ping"'*) echo "{{\"id\":\"$id\"}}" ;;
    *) {answer} ;;
  esac
done
"#
    )
}

const FIRST: &str = r#"echo "{\"id\":\"$id\",\"choice\":\"$first\"}""#;
const NOTHING: &str = r#"echo "{\"id\":\"$id\",\"choice\":null}""#;
const MAIL: &str = r#"echo "{\"id\":\"$id\",\"choice\":\"mail:send_mail\"}""#;
const INVENTED: &str = r#"echo "{\"id\":\"$id\",\"choice\":\"shop:order_pizza#00000000\"}""#;

fn files(choosers: &[(&str, &str)]) -> Files {
    let files = Files::new();
    files.write("tools.json", TOOLS);
    files.write("queries.jsonl", QUERIES);
    for (name, answer) in choosers {
        files.write(&format!("{name}.sh"), chooser(answer));
    }
    files
}

const EVAL: [&str; 6] = ["bench", "eval", "--catalog", "tools.json", "--queries", "queries.jsonl"];

fn eval(files: &Files, arguments: &[&str]) -> Run {
    files.run(&[&EVAL[..], arguments].concat())
}

/// The document of a run that went well.
fn document(files: &Files, arguments: &[&str]) -> Value {
    let run = eval(files, &[arguments, &["--format", "json"]].concat());
    assert_eq!(run.code, 0, "{}", run.shown());
    serde_json::from_str(&run.stdout).unwrap()
}

/// The counts of a tally in the order right, wrong, none, not shown, invalid.
fn tally(facts: &Value, of: &str) -> [u64; 5] {
    ["right", "wrong", "none", "not_shown", "invalid"].map(|name| facts["counts"][of][name].as_u64().unwrap())
}

#[test]
fn who_takes_the_first_card_has_the_recall_of_the_engine() {
    let files = crate::pages::thirty_queries();
    let text = fs::read_to_string(files.path("queries.jsonl")).unwrap();
    let one_tool = |line: &&str| {
        serde_json::from_str::<Value>(line).unwrap()["relevant"].as_array().is_some_and(|tools| tools.len() == 1)
    };
    let lines: Vec<&str> = text.lines().filter(one_tool).collect();
    assert!(lines.len() > 10, "{}", lines.len());
    files.write("queries.jsonl", lines.join("\n"));
    files.write("first.sh", chooser(FIRST));
    let choose = ["--engine", "bm25", "--engine", "default", "--choose", "first=sh first.sh"];
    let document = document(&files, &choose);
    let (measures, right) =
        (&document["evaluations"][0]["facts"]["measures"], &document["choices"][0]["facts"]["right"]);
    // With its interval, digit by digit.
    for engine in [&measures["recall@1"], &measures["hit@1"], &right["first_card"]] {
        assert_eq!(&right["chosen"], engine);
    }
    assert!(right["chosen"]["mean"].as_f64().is_some_and(|mean| 0.0 < mean && mean < 1.0), "{right}");
    assert_eq!(document["choices"][0]["engine"], "bm25");
    assert_eq!(document["choices"][0]["facts"]["versus_first_card"]["differing"], 0);
}

#[test]
fn what_is_said_is_counted_by_what_was_right_to_say() {
    let files = files(&[("first", FIRST), ("nothing", NOTHING), ("mail", MAIL), ("invented", INVENTED)]);
    let all = ["--choose", "first=sh first.sh", "--choose", "nothing=sh nothing.sh", "--choose", "mail=sh mail.sh"];
    let all = [&all[..], &["--choose", "invented=sh invented.sh", "--cards", "1"]].concat();
    let printed = document(&files, &all);
    let facts = |at: usize| &printed["choices"][at]["facts"];
    // Of q4 another tool is shown; of q6 none is, and nobody is asked.
    for (at, shown, not_shown, without, repaired) in [
        (0, [3, 0, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 0, 0, 0], 0),
        (1, [0, 0, 3, 0, 0], [0, 0, 2, 0, 0], [0, 0, 1, 0, 0], 0),
        (2, [1, 0, 0, 2, 0], [0, 0, 1, 1, 0], [0, 1, 0, 0, 0], 2),
        (3, [0, 0, 0, 0, 3], [0, 0, 1, 0, 1], [0, 0, 0, 0, 1], 0),
    ] {
        let facts = facts(at);
        assert_eq!(facts["asked"], 5);
        let counts = ["shown", "not_shown", "no_tool_answers"].map(|name| tally(facts, name));
        assert_eq!((counts, &facts["repaired"]), ([shown, not_shown, without], &repaired.into()), "{at}: {facts}");
    }
    let mean = |at: usize, name: &str| facts(at)[name]["mean"].as_f64();
    assert_eq!(mean(1, "none_where_no_tool_answers"), Some(1.0));
    assert_eq!((mean(1, "none_where_shown"), mean(3, "none_where_shown")), (Some(1.0), Some(0.0)));
    assert_eq!(facts(1)["right"]["chosen"]["mean"], 0.0);
    assert_eq!(facts(0)["right_where_shown"]["chosen"]["mean"], 1.0);
    // One card is shown, so any card is the first.
    assert_eq!(facts(1)["right"]["random_card"], facts(1)["right"]["first_card"]);

    let run = eval(&files, &["--choose", "mail=sh mail.sh", "--cards", "1"]);
    let chosen = run.stdout.split_once("\nchooser: ").unwrap().1;
    let without_times: String = chosen.lines().filter(|line| !line.starts_with("time ")).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(without_times, @r#"
    mail (script 1)
    shown the first card of default

                                        queries  mean  95 % interval  first card  random card
    right                                     5  .200     [.00, .60]        .600         .600
    right where a right tool was shown        3  .333    [.00, 1.00]       1.000        1.000
    none where no tool answers                1  .000     [.00, .00]
    none where a right tool was shown         3  .000     [.00, .00]

                               queries  right  wrong  none  not shown  invalid
    a right tool was shown           3      1      0     0          2        0
    a tool answers, not shown        2      0      0     1          1        0
    no tool answers                  1      0      1     0          0        0

    difference  −.400 [−.800, .000] from the first card: inconclusive
    repaired    2 of 5 answers
    tokens      a question 65, at most 66; of that cards 29 (cl100k_base)
    "#);
}

#[test]
fn a_record_gives_the_same_bytes_without_the_program() {
    let files = files(&[("first", FIRST), ("mail", MAIL)]);
    let both = ["--choose", "first=sh first.sh", "--choose", "mail=sh mail.sh", "--choose-as", "anthropic"];
    for form in ["text", "json", "jsonl", "markdown"] {
        let asked = eval(&files, &[&both[..], &["--record", "answers.jsonl", "--format", form]].concat());
        let again = eval(&files, &["--replay", "answers.jsonl", "--format", form]);
        assert_eq!((asked.code, again.code), (0, 0), "{}{}", asked.shown(), again.shown());
        assert!(asked.stdout == again.stdout && asked.stdout.contains("mail"), "{}", again.stdout);
    }
    let answers = fs::read_to_string(files.path("answers.jsonl")).unwrap();
    assert_eq!(answers.lines().count(), 2 * (1 + 5), "{answers}");
    files.write("answers.jsonl", answers.replacen("\"choice\":\"mail:send_mail\"", "\"choice\":null", 1));
    let printed = document(&files, &["--replay", "answers.jsonl"]);
    assert_eq!(tally(&printed["choices"][1]["facts"], "shown"), [1, 0, 1, 1, 0], "what the file says is scored");

    // Another engine shows other cards, and other queries are other questions.
    files.write("answers.jsonl", answers.replace("open an issue", "close an issue"));
    files.write("queries.jsonl", QUERIES.replace("open an issue", "close an issue"));
    let other = eval(&files, &["--replay", "answers.jsonl"]);
    let expected = "answers.jsonl:1: it was recorded on another catalog or other queries; record it again";
    assert!(other.code == 2 && other.stderr.contains(expected), "{}", other.shown());
    files.write("queries.jsonl", QUERIES);
    files.write("answers.jsonl", answers.replacen("\"asked_sha256\":\"", "\"asked_sha256\":\"0", 1));
    let other = eval(&files, &["--replay", "answers.jsonl"]);
    assert!(
        other.code == 2 && other.stderr.contains("answers.jsonl:2: query `q1` was asked with different"),
        "{}",
        other.shown()
    );
}

#[test]
fn a_program_that_hangs_or_says_too_much_is_named_and_the_engines_are_measured() {
    let lines =
        |count: usize| format!("printf '{{\"id\":\"%s\",\"choice\":\"' $id; head -c {count} /dev/zero | tr '\\0' x");
    let (much, endless) = (lines(3_000_000) + "; echo '\"}'", lines(20_000_000));
    let files = files(&[("slow", "sleep 30"), ("much", &much), ("endless", &endless), ("deaf", "exit 3")]);
    let names = ["slow", "endless", "deaf"];
    let choosers = names.map(|name| format!("{name}=sh {name}.sh"));
    let arguments: Vec<&str> = choosers.iter().flat_map(|chooser| ["--choose", chooser]).collect();
    let more = ["--choose-timeout", "2", "--record", "answers.jsonl"];
    let run = eval(&files, &[&arguments[..], &more].concat());
    assert_eq!(run.code, 2, "{}", run.shown());
    assert!(run.stdout.starts_with("configuration: default\n"), "{}", run.stdout);
    for (name, expected) in [
        ("slow", "timed out: the query \""),
        ("slow", "\" took more than 2000 ms"),
        ("endless", ": an answer is longer than 16777216 bytes"),
        ("deaf", "failed: it ended without answering the query \""),
    ] {
        let place = format!("\nchooser: {name}\n");
        let reason =
            run.stdout.split_once(&place).unwrap_or_else(|| panic!("{}", run.shown())).1.lines().next().unwrap();
        assert!(reason.contains(expected), "{name}: {reason}");
    }
    assert!(run.stderr.contains("some programs did not finish choosing: `slow`: timed out: "), "{}", run.stderr);
    assert!(!files.path("answers.jsonl").exists(), "nothing was said");

    let printed = document(&files, &["--choose", "much=sh much.sh", "--record", "answers.jsonl"]);
    assert_eq!(tally(&printed["choices"][0]["facts"], "shown"), [0, 0, 0, 0, 3]);
    let kept = fs::metadata(files.path("answers.jsonl")).unwrap().len();
    assert!(kept < 60_000, "{kept}");
}

#[test]
fn what_was_answered_before_a_bad_end_is_kept() {
    let dies = format!("n=$((n + 1)); [ $n = 4 ] && exit 3; {FIRST}");
    let hangs = format!("n=$((n + 1)); [ $n = 3 ] && sleep 30; {FIRST}");
    let files = files(&[("first", FIRST), ("dies", &dies), ("hangs", &hangs)]);
    files.write("lingers.sh", chooser(FIRST) + "sleep 30\n");
    files.write("answers.jsonl", "an earlier record\n");
    let record = ["--choose-timeout", "2", "--record", "answers.jsonl"];
    let run = eval(&files, &[&["--choose", "dies=sh dies.sh", "--choose", "hangs=sh hangs.sh"][..], &record].concat());
    assert_eq!(run.code, 2, "{}", run.shown());
    for (name, kept) in [("dies", "; 3 of 5 answers are kept in answers.jsonl.partial"), ("hangs", "; 2 of 5 answers")]
    {
        let reason =
            run.stdout.split_once(&format!("\nchooser: {name}\n")).unwrap_or_else(|| panic!("{}", run.shown())).1;
        assert!(reason.lines().next().is_some_and(|reason| reason.contains(kept)), "{name}: {reason}");
    }
    let text = |name: &str| fs::read_to_string(files.path(name)).unwrap();
    assert_eq!(text("answers.jsonl"), "an earlier record\n");
    assert_eq!(text("answers.jsonl.partial").lines().count(), (1 + 3) + (1 + 2));
    let replayed = eval(&files, &["--replay", "answers.jsonl.partial"]);
    let expected = "answers.jsonl.partial:5: `dies` has no answer to 2 of 5 queries, the first of them `";
    assert!(replayed.code == 2 && replayed.stderr.contains(expected), "{}", replayed.shown());
    let unrecorded = eval(&files, &["--choose", "dies=sh dies.sh"]);
    assert!(unrecorded.stderr.contains("; 3 of 5 questions were answered, and --record"), "{}", unrecorded.shown());

    // Others are kept as ever, and so is who answered everything and then did not end.
    let run =
        eval(&files, &[&["--choose", "lingers=sh lingers.sh", "--choose", "first=sh first.sh"][..], &record].concat());
    assert!(run.code == 2 && run.stderr.contains("; every question had been answered"), "{}", run.shown());
    let replayed = eval(&files, &["--replay", "answers.jsonl"]);
    assert_eq!(replayed.code, 0, "{}", replayed.shown());
    assert!(run.stdout.starts_with(&replayed.stdout), "{}{}", run.stdout, replayed.stdout);
}

#[cfg(unix)]
#[test]
fn what_was_answered_before_a_signal_is_kept() {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    let waits = format!("n=$((n + 1)); [ $n = 3 ] && {{ : > \"$TMPDIR/third\"; sleep 600; }}; {FIRST}");
    let files = files(&[("first", FIRST), ("waits", &waits)]);
    files.write("answers.jsonl", "an earlier record\n");
    let third = files.write("seen/none", "").with_file_name("third");
    for (choosers, whole) in [(&["waits"][..], None), (&["first", "waits"], Some(1 + 5))] {
        let _ = fs::remove_file(&third);
        let choosers: Vec<String> = choosers.iter().map(|name| format!("{name}=sh {name}.sh")).collect();
        let arguments = choosers.iter().flat_map(|chooser| ["--choose", chooser]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_contextweaver"));
        command.args(EVAL).args(arguments).args(["--record", "answers.jsonl"]).env("TMPDIR", files.path("seen"));
        let mut child =
            command.current_dir(files.path("")).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while !third.exists() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let text = |name: &str| fs::read_to_string(files.path(name)).unwrap();
        match whole {
            None => assert_eq!(text("answers.jsonl"), "an earlier record\n"),
            Some(lines) => assert_eq!(text("answers.jsonl").lines().count(), lines),
        }
        let part = text("answers.jsonl.partial");
        assert!(part.lines().count() == 1 + 2 && part.ends_with("}\n"), "{part}");
        let replayed = eval(&files, &["--replay", "answers.jsonl.partial"]);
        let expected = "answers.jsonl.partial:3: `waits` has no answer to 3 of 5 queries, the first of them `";
        assert!(replayed.code == 2 && replayed.stderr.contains(expected), "{}", replayed.shown());
    }
}

#[test]
fn it_gets_definitions_and_variables_where_it_shall() {
    let called = r#"case "$line" in
      *'"tools":[{"type":"function","function":{"name":"'*'"names":{'*) [ "$KEY" = k1 ] && echo "{\"id\":\"$id\",\"choice\":\"$first\"}" ;;
      *) echo "{\"id\":\"$id\",\"choice\":\"${KEY:-none}\"}" ;;
    esac"#;
    let files = files(&[("called", called)]);
    let choose = ["--choose", "called=sh called.sh", "--format", "json"];
    let facts = |more: &[&str]| {
        let run = files.run_with(&[&EVAL[..], &choose, more].concat(), &[("KEY", "k1")]);
        assert_eq!(run.code, 0, "{}", run.shown());
        serde_json::from_str::<Value>(&run.stdout).unwrap()["choices"][0].clone()
    };
    let with = facts(&["--choose-as", "openai", "--choose-env", "KEY"]);
    assert_eq!((&with["as"], tally(&with["facts"], "shown")), (&"openai".into(), [3, 0, 0, 0, 0]), "{with}");
    let tokens = |one: &Value, name: &str| one["facts"]["tokens"][name].as_f64();
    assert!(tokens(&with, "tools_mean") > tokens(&with, "cards_mean"), "{with}");
    let without = facts(&[]);
    assert_eq!((tally(&without["facts"], "shown"), tokens(&without, "tools_mean")), ([0, 0, 3, 0, 0], None));
    assert_eq!(tally(&facts(&["--choose-env", "KEY"])["facts"], "shown"), [0, 0, 0, 0, 3]);
}

/// The queries name the tools that answer them.
#[cfg(target_os = "linux")]
#[test]
fn it_cannot_read_the_judgements() {
    let looks = r#"if grep -q relevant "$1"; then first=found; fi; echo "{\"id\":\"$id\",\"choice\":\"$first\"}""#;
    let files = files(&[("looks", looks)]);
    let run = eval(&files, &["--choose", "looks=sh looks.sh queries.jsonl", "--format", "json"]);
    assert!(
        run.code == 0 && run.stderr.contains("looks: hidden from it by the kernel: queries.jsonl"),
        "{}",
        run.shown()
    );
    let printed: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(tally(&printed["choices"][0]["facts"], "shown"), [3, 0, 0, 0, 0]);
}

#[test]
fn what_cannot_be_asked_is_refused_before_anything_is_measured() {
    let files = files(&[("first", FIRST)]);
    let first = ["--choose", "first=sh first.sh"];
    for (more, expected) in [
        (&["--format", "csv"][..], "--choose and --replay have no place in a CSV table"),
        (&["--choose", "first=sh other.sh"], "--choose names `first` twice; give each program a name of its own"),
        (&["--choose-env", "NO_SUCH_KEY"], "--choose-env NO_SUCH_KEY: this environment variable is not set"),
        (&["--cards", "0"], "it is not a number from 1 to 100"),
        (&["--choose-as", "pizza"], "use one of openai, openai-responses, anthropic, gemini, mcp"),
        (&["--choose-as", "weaver-spec"], "use one of openai, openai-responses, anthropic, gemini, mcp"),
        (&["--choose", "other"], "not of the form NAME=COMMAND"),
        (&["--record", "."], "--record .: it is a folder; name a file"),
        (&["--record", "no/answers.jsonl"], "--record: the file cannot be written; name one in a folder that exists"),
        (&["--record", "queries.jsonl"], "--record queries.jsonl would write over queries.jsonl of --queries"),
        (&["--replay", "answers.jsonl"], "'--replay <FILE>'"),
    ] {
        let run = eval(&files, &[&first[..], more].concat());
        assert!(run.code == 2 && run.stderr.contains(expected), "{expected}: {}", run.shown());
    }
    let alone = eval(&files, &["--cards", "3"]);
    assert!(alone.code == 2 && alone.stderr.contains("--choose <NAME=COMMAND>"), "{}", alone.shown());
    for (replayed, expected) in [
        ("absent.jsonl", "--replay absent.jsonl: name a file that --record wrote\n  caused by: No such file"),
        #[cfg(unix)]
        (".", ".:1: it cannot be read: "),
        #[cfg(target_os = "linux")]
        ("/dev/zero", "/dev/zero:1: a line has more than 16777216 bytes"),
    ] {
        let run = eval(&files, &["--replay", replayed]);
        assert!(run.code == 2 && run.stderr.contains(expected), "{expected}: {}", run.shown());
    }
    assert_eq!(files.names(), ["first.sh", "queries.jsonl", "tools.json"]);
}

#[test]
fn a_replay_asks_nobody_and_records_nothing() {
    let files = files(&[("first", FIRST)]);
    let asked = eval(&files, &["--choose", "first=sh first.sh", "--record", "answers.jsonl"]);
    assert_eq!(asked.code, 0, "{}", asked.shown());
    files.write("old.jsonl", "an earlier record\n");
    for more in [
        ["--record", "old.jsonl"],
        ["--cards", "3"],
        ["--choose-as", "openai"],
        ["--choose-timeout", "5"],
        ["--choose-env", "PATH"],
    ] {
        let run = eval(&files, &[&["--replay", "answers.jsonl"][..], &more].concat());
        let is_named = run.stderr.contains("cannot be used with") && run.stderr.contains(more[0]);
        assert!(run.code == 2 && is_named, "{}", run.shown());
    }
    assert_eq!(fs::read_to_string(files.path("old.jsonl")).unwrap(), "an earlier record\n");
}
