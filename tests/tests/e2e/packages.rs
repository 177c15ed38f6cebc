//! The packages for other languages, as far as they are compared with the program. `cargo xtask packages` runs all
//! of their tests.

use std::path::Path;
use std::process::Command;

use hearback_tests::{bin, python, run, skipped};

#[test]
fn scenario_146_the_python_package_sees_what_the_command_line_sees() {
    let Some(python) = python::interpreter() else { return };
    let new_enough = ["-c", "import sys; sys.exit(sys.version_info < (3, 11))"];
    if !Command::new(&python).args(new_enough).status().unwrap().success() {
        skipped("the Python package needs Python 3.11");
        return;
    }
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packages").join("python");
    let mut command = Command::new(python);
    command.args(["-m", "unittest", "discover", "-k", "scenario_146", "-k", "test_documents", "-s"]);
    command.arg(package.join("tests"));
    command.env("HEARBACK", bin("hearback")).env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = run(command);
    ran.exits(0);
    assert!(!ran.stderr.contains("Ran 0 tests"), "{ran}");
}
