//! Tests of `settings.rs`.

use super::*;

fn merge(file: &str, env: &[(&str, &str)]) -> Settings {
    Settings::merge(Path::new("config.toml"), file, |name| {
        env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    })
}

/// The value of a setting and where it comes from.
fn shown(settings: &Settings, name: &str) -> String {
    let all = settings.effective();
    let setting = all.iter().find(|setting| setting.name == name).unwrap();
    format!("{} from {}", setting.value.as_deref().unwrap_or("none"), setting.origin())
}

#[test]
fn what_signs_a_webhook_is_a_secret_whatever_else_is_wrong_with_it() {
    let good = "[sink.a]\nurl = 'https://example.org/'\nsecret_env = 'HOOK'\n";
    let bad = "[sink.b]\nurl = 'nonsense'\nsecret_env = 'OTHER'\n";
    let settings = merge(&format!("secrets = ['HOOK']\n{good}{bad}"), &[]);
    assert_eq!(settings.secrets, ["HOOK", "OTHER"]);
    assert!(!settings.sinks.contains_key("b"));
}

#[test]
fn the_budget_of_a_notice_is_a_size_within_reason() {
    let notice = |file: &str, env: &[(&str, &str)]| merge(file, env).notice;
    let bytes = |bytes| NoticeBytes::new(bytes).unwrap();
    assert_eq!(notice("notice_bytes = 2000", &[]), bytes(2000));
    assert_eq!(notice("notice_bytes = \"16KiB\"", &[]), bytes(16 * 1024));
    assert_eq!(notice("notice_bytes = 2000", &[("HEARBACK_NOTICE_BYTES", "0")]), bytes(0));
    let absurd = merge("notice_bytes = \"2MiB\"", &[("HEARBACK_NOTICE_BYTES", "some")]);
    assert_eq!((absurd.notice, absurd.warnings.len()), (NoticeBytes::default(), 2));
}

#[test]
fn scenario_89_environment_beats_file_beats_default_and_a_bad_value_is_named() {
    assert_eq!(merge("", &[]), Settings::default());
    for (name, default, file, env) in [
        ("busy", "queue", "interrupt", "queue"),
        ("drain_timeout", "1m", "5s", "2m"),
        ("resume_window", "1h", "2h", "3h"),
        ("retention", "30days", "7days", "8days"),
        ("max_jobs", "10000", "5", "9"),
        ("durability", "power", "process", "power"),
        ("notice_sink", "none", "here", "there"),
    ] {
        let (text, variable) = (format!("{name} = \"{file}\""), variable(name));
        assert_eq!(shown(&merge("", &[]), name), format!("{default} from default"));
        assert_eq!(shown(&merge(&text, &[]), name), format!("{file} from file"));
        let both = merge(&text, &[(&variable, env)]);
        assert_eq!(shown(&both, name), format!("{env} from environment {variable}"));
        assert_eq!(both.warnings, Vec::<String>::new());
    }
    let bad = [("busy", "wait"), ("drain_timeout", "soon"), ("max_jobs", "-1"), ("durability", "unknown")];
    for (name, bad) in bad {
        let variable = variable(name);
        let settings = merge("", &[(&variable, bad)]);
        assert_eq!(shown(&settings, name), shown(&Settings::default(), name), "bad falls back");
        let [warning] = &settings.warnings[..] else { panic!("{:?}", settings.warnings) };
        assert!(warning.contains(&variable) && warning.contains(bad), "{warning}");
    }
    let second = merge("drain_timeout = '5s'", &[("HEARBACK_DRAIN_TIMEOUT", "soon")]);
    assert_eq!(shown(&second, "drain_timeout"), "5s from file", "to what would hold without it");
}

#[test]
fn scenario_89_zero_has_its_meaning_and_less_is_taken_for_it() {
    for (zero, is_clamped) in [("0", false), ("0s", false), ("-5s", true), ("-1", true)] {
        for (name, kind) in VALUES {
            let (Kind::Wait(field) | Kind::Age(field)) = kind else { continue };
            let mut settings = merge(&format!("{name} = '{zero}'"), &[]);
            let unlimited = matches!(kind, Kind::Age(_));
            let meaning = if unlimited { Duration::MAX } else { Duration::ZERO };
            assert_eq!(*field(&mut settings), meaning, "{name} = {zero}");
            assert_eq!(shown(&settings, name), "0s from file");
            assert_eq!(settings.warnings.len(), usize::from(is_clamped), "{:?}", settings.warnings);
            assert!(settings.warnings.iter().all(|warning| warning.contains(name)));
        }
    }
    assert_eq!(shown(&merge("drain_timeout = -1", &[]), "drain_timeout"), "0s from file", "a bare number");
    assert_eq!(merge("drain_timeout = 60", &[]).warnings.len(), 1, "of what?");
}

#[test]
fn what_is_wrong_in_the_file_is_named_with_its_place_and_the_rest_holds() {
    let file = "busy = 'interrupt'\nmax_job = 5\nretention = 'soon'\nattempts = [1]\nsecrets = ['A', 4]\n\
                max_depth = 3\n\n[sink.a]\nfile = '/x'\ntimout = '5s'\n\n[sink.b]\nfile = '/y'\n\n[sink.c]\n";
    let settings = merge(file, &[]);
    assert_eq!(
        settings.warnings,
        [
            "`max_job` in config.toml:2:1 is no setting and was ignored; did you mean `max_jobs`?",
            "`secrets` in config.toml:5:17 is invalid and was ignored: expected a list of names",
            "[sink.a] in config.toml:10:1 is invalid and was ignored: `timout` is no key of a sink; did you mean \
             `timeout`?",
            "[sink.c] in config.toml:15:7 is invalid and was ignored: it needs one of `command`, `preset`, `url` \
             and `file`",
            "retention in config.toml:3:13 is `soon`, which is invalid and was ignored: expected a time such as \
             `90s` or `30days`",
            "attempts in config.toml:4:12 is invalid and was ignored: expected text, a number, `true` or `false`",
        ]
    );
    assert_eq!((settings.busy, settings.max_depth), (Busy::Interrupt, 3));
    assert_eq!(settings.sinks.keys().collect::<Vec<_>>(), ["b"]);
    let broken = merge("busy = 'interrupt'\nmax_depth = = 3\n", &[]);
    let [warning] = &broken.warnings[..] else { panic!("{:?}", broken.warnings) };
    assert!(warning.starts_with("config.toml:2:13 is not valid TOML, so the file was ignored:"), "{warning}");
    assert_eq!(
        merge("sink = 5", &[]).warnings,
        ["`sink` in config.toml:1:8 is invalid and was ignored: expected a table"]
    );
}

#[test]
fn what_is_no_setting_is_named() {
    assert!(merge("max_job = 5", &[]).warnings[0].contains("max_job"));
    assert!(merge("not toml at all [", &[]).warnings[0].contains("config.toml"));
    assert!(
        merge("attempts = 0", &[]).warnings[0].contains("attempts"),
        "without an attempt, no owner would be notified"
    );
}

#[test]
fn settings_can_be_made_in_code() {
    let settings = Settings { max_depth: 2, ..Settings::default() };
    assert_eq!(shown(&settings, "max_depth"), "2 from code");
    assert_eq!(shown(&settings, "max_rate"), "60 from default");
}

#[test]
fn of_secrets_the_names_are_shown() {
    let settings = merge("secrets = ['A', 'B']", &[]);
    assert_eq!(shown(&settings, "secrets"), "A, B from file");
    assert_eq!(shown(&Settings::default(), "secrets"), "none from default");
}

#[test]
fn only_what_an_agent_launches_has_a_limit_by_default() {
    assert_eq!(DefaultTimeout::Auto.of(true), Some(DEFAULT_TIMEOUT));
    assert_eq!(DefaultTimeout::Auto.of(false), None);
    assert_eq!(DefaultTimeout::None.of(true), None);
    let limit = Duration::from_secs(7);
    assert_eq!(DefaultTimeout::After(limit).of(false), Some(limit));
}
