//! How a machine gets what it lacks: a software Vulkan driver, or a C++ compiler.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// What this user can do about packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// The system's package manager, where it is one we know.
    pub packages: Option<PackageManager>,
    /// What the user may do with it.
    pub privilege: Privilege,
}

/// A package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackageManager {
    /// Debian and its descendants.
    Apt,
    /// Fedora and its descendants.
    Dnf,
    /// Arch Linux.
    Pacman,
    /// Alpine.
    Apk,
    /// openSUSE.
    Zypper,
}

impl PackageManager {
    const ALL: [Self; 5] = [Self::Apt, Self::Dnf, Self::Pacman, Self::Apk, Self::Zypper];

    fn program(self) -> &'static str {
        match self {
            Self::Apt => "apt-get",
            Self::Dnf => "dnf",
            Self::Pacman => "pacman",
            Self::Apk => "apk",
            Self::Zypper => "zypper",
        }
    }

    /// What installs g++.
    fn compiler(self) -> &'static str {
        match self {
            Self::Apt => "apt-get install g++",
            Self::Dnf => "dnf install gcc-c++",
            Self::Pacman => "pacman -S gcc",
            Self::Apk => "apk add g++",
            Self::Zypper => "zypper install gcc-c++",
        }
    }

    /// What installs a software Vulkan driver and the loader.
    fn vulkan(self) -> &'static str {
        match self {
            Self::Apt => "apt-get install mesa-vulkan-drivers libvulkan1",
            Self::Dnf => "dnf install mesa-vulkan-drivers vulkan-loader",
            Self::Pacman => "pacman -S vulkan-swrast vulkan-icd-loader",
            Self::Apk => "apk add mesa-vulkan-swrast vulkan-loader",
            Self::Zypper => "zypper install libvulkan_lvp libvulkan1",
        }
    }
}

/// Whether packages can be installed without asking anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// The user is root.
    Root,
    /// sudo asks for no password.
    Sudo,
    /// Neither.
    None,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Install packages by apt-get.
    Install {
        /// Whether it takes sudo.
        sudo: bool,
    },
    /// Unpack SwiftShader into the target folder, which takes no privilege.
    UnpackSwiftShader,
    /// Tell the user what to type.
    TellUser(String),
}

impl Means {
    /// Looks at this machine. Asks sudo only where the answer matters: it may report a user who is not allowed it.
    pub fn probe() -> Self {
        let packages = PackageManager::ALL.into_iter().find(|manager| is_program(manager.program()));
        let privilege = if packages != Some(PackageManager::Apt) {
            Privilege::None
        } else if is_root() {
            Privilege::Root
        } else if sudo_asks_nothing() {
            Privilege::Sudo
        } else {
            Privilege::None
        };
        Self { packages, privilege }
    }
}

/// What to do about a missing C++ compiler, given these means.
pub fn of_compiler(means: &Means) -> Remedy {
    match (means.packages, means.privilege) {
        (Some(PackageManager::Apt), Privilege::Root) => Remedy::Install { sudo: false },
        (Some(PackageManager::Apt), Privilege::Sudo) => Remedy::Install { sudo: true },
        (Some(manager), _) => Remedy::TellUser(format!("type `sudo {}`, then run this again", manager.compiler())),
        (None, _) => Remedy::TellUser("install g++, then run this again".to_owned()),
    }
}

/// What to do about a missing Vulkan driver, given these means.
pub fn of_vulkan(means: &Means) -> Remedy {
    match (means.packages, means.privilege) {
        (Some(PackageManager::Apt), Privilege::Root) => Remedy::Install { sudo: false },
        (Some(PackageManager::Apt), Privilege::Sudo) => Remedy::Install { sudo: true },
        (Some(PackageManager::Apt), Privilege::None) => Remedy::UnpackSwiftShader,
        (Some(manager), _) => Remedy::TellUser(format!("type `sudo {}`, then run this again", manager.vulkan())),
        (None, _) => Remedy::TellUser(
            "install the Vulkan loader (libvulkan.so.1) and Mesa's software driver (lavapipe), then run this again"
                .to_owned(),
        ),
    }
}

/// Whether a program is installed.
pub fn is_program(name: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    // An ordinary user's search path leaves out the folders of some package managers.
    env::split_paths(&path)
        .chain(["/usr/bin".into(), "/sbin".into()])
        .any(|folder| Path::new(&folder).join(name).is_file())
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn sudo_asks_nothing() -> bool {
    let mut sudo = Command::new("sudo");
    sudo.args(["--non-interactive", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    sudo.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(packages: Option<PackageManager>, privilege: Privilege) -> Remedy {
        of_vulkan(&Means { packages, privilege })
    }

    #[test]
    fn debian_installs_where_it_may_and_unpacks_where_not() {
        let apt = Some(PackageManager::Apt);
        assert_eq!(on(apt, Privilege::Root), Remedy::Install { sudo: false });
        assert_eq!(on(apt, Privilege::Sudo), Remedy::Install { sudo: true });
        assert_eq!(on(apt, Privilege::None), Remedy::UnpackSwiftShader);
    }

    #[test]
    fn a_compiler_is_installed_or_named() {
        let on = |packages, privilege| of_compiler(&Means { packages: Some(packages), privilege });
        assert_eq!(on(PackageManager::Apt, Privilege::Sudo), Remedy::Install { sudo: true });
        for (manager, privilege, command) in [
            (PackageManager::Apt, Privilege::None, "`sudo apt-get install g++`"),
            (PackageManager::Dnf, Privilege::Root, "`sudo dnf install gcc-c++`"),
        ] {
            let Remedy::TellUser(advice) = on(manager, privilege) else { panic!("not told") };
            assert!(advice.contains(command), "{advice}");
        }
    }

    #[test]
    fn elsewhere_the_user_is_told_the_command() {
        let Remedy::TellUser(advice) = on(Some(PackageManager::Dnf), Privilege::Root) else { panic!("not told") };
        assert!(advice.contains("`sudo dnf install mesa-vulkan-drivers vulkan-loader`"), "{advice}");
    }

    #[test]
    fn without_a_known_package_manager_the_user_is_told_what_is_missing() {
        let Remedy::TellUser(advice) = on(None, Privilege::Root) else { panic!("not told") };
        assert!(advice.contains("libvulkan.so.1"), "{advice}");
    }
}
