//! The environment variables that lead a child process to its device.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::system::variable;

/// Variables for a child process, in addition to those it inherits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    variables: Vec<(&'static str, OsString)>,
    library_folder: Option<PathBuf>,
}

impl Environment {
    /// Sets a variable.
    pub fn set(&mut self, name: &'static str, value: impl Into<OsString>) {
        self.variables.push((name, value.into()));
    }

    /// Puts a folder in front of those that the dynamic linker searches.
    pub fn search_libraries_in(&mut self, folder: PathBuf) {
        self.library_folder = Some(folder);
    }

    /// Hands the variables to a command.
    pub fn apply(&self, command: &mut Command) {
        command.envs(self.variables.iter().cloned());
        if let Some(folder) = &self.library_folder {
            let mut value = OsString::from(folder);
            if let Some(others) = variable("LD_LIBRARY_PATH") {
                value.push(":");
                value.push(others);
            }
            command.env("LD_LIBRARY_PATH", value);
        }
    }

    /// The variables as lines for a POSIX shell.
    pub fn export_lines(&self) -> Vec<String> {
        let mut lines: Vec<_> = self
            .variables
            .iter()
            .map(|(name, value)| format!("export {name}={}", quoted(&value.to_string_lossy())))
            .collect();
        if let Some(folder) = &self.library_folder {
            let folder = quoted(&folder.to_string_lossy());
            // The shell's own value: Cargo has added folders to ours, for this process only.
            lines.push(format!("export LD_LIBRARY_PATH={folder}\"${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\""));
        }
        lines
    }
}

/// A word that the shell takes literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_reads_values_literally() {
        let mut environment = Environment::default();
        environment.set("VK_DRIVER_FILES", "/home/o'neil/$x y.json");
        environment.search_libraries_in("/opt/lib".into());
        assert_eq!(
            environment.export_lines(),
            [
                r"export VK_DRIVER_FILES='/home/o'\''neil/$x y.json'",
                r#"export LD_LIBRARY_PATH='/opt/lib'"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}""#,
            ]
        );
    }

    #[test]
    fn a_command_gets_the_variables() {
        let mut environment = Environment::default();
        environment.set("CUBECL_WGPU_DEFAULT_DEVICE", "Cpu");
        let mut command = Command::new("true");
        environment.apply(&mut command);
        let variables: Vec<_> = command.get_envs().collect();
        assert_eq!(variables, [("CUBECL_WGPU_DEFAULT_DEVICE".as_ref(), Some("Cpu".as_ref()))]);
    }
}
