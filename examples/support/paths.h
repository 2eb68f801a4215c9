#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace example {

/// The files that a program reads and writes, with the options that name them. `check` finds out before the
/// training that one would replace another, or that one cannot be written. An empty path is none.
class Paths {
 public:
  /// @param replacedBy  the option whose file may be the same one, as a training that is resumed into its
  /// file.
  void reads(std::string option, const std::filesystem::path& file, std::string replacedBy = {});
  void writes(std::string option, const std::filesystem::path& file);
  /// A directory that is made if it is missing. @param names  of the files written there.
  void writesInto(std::string option, const std::filesystem::path& directory,
                  const std::vector<std::string>& names = {});

  /// Paths are the same where they lead to one file, by links or by other spellings.
  /// @throws muster::InvalidArgument naming two options and their file; muster::FileError for a file or a
  ///         directory that cannot be written.
  void check() const;

 private:
  struct Entry {
    std::string option;  // with its dashes
    std::filesystem::path path;
    bool written = false;
    bool inDirectory = false;  // of the list below, which may not be made yet
    std::string replacedBy = {};
  };

  void checkPair(const Entry& one, const Entry& other) const;

  std::vector<Entry> files_, directories_;
};

}  // namespace example
