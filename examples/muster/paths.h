#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace program {

/// What is written under a name of the user's choice.
enum class Content { Any, Model, Results, Network, Predictions, Page, Onnx, Deeplearning4j };

/// Whether a command takes the file for a model, whatever its ending is, if it is there.
bool isModelFile(const std::string& path);

/// The files that a program reads and writes, with the options that name them. Before the training, `check`
/// finds files that would replace each other or cannot be written. Empty paths are ignored.
class Paths {
 public:
  /// @param replacedBy  an option that may name the same file, for example to resume a training and save it
  ///         in place.
  void reads(std::string option, const std::filesystem::path& file, std::string replacedBy = {});
  /// Adds a directory whose pictures, PNG files at any depth, are read.
  void readsPictures(std::string option, const std::filesystem::path& directory);
  /// @param content  `check` refuses to replace a file of other content; Any: it replaces every file.
  /// @throws muster::InvalidArgument for standard output, which has the program's lines.
  void writes(std::string option, const std::filesystem::path& file, Content content = Content::Any);
  /// As `writes`, for a command's whole result, which may go to standard output (writeResult).
  void writesResult(std::string option, const std::filesystem::path& file, Content content);
  /// Adds a directory that the program creates if missing. @param names  the files written there; empty: a
  ///         listener gives them names that are always new.
  void writesInto(std::string option, const std::filesystem::path& directory,
                  const std::vector<std::string>& names = {});
  /// Adds a directory of checkpoints, which the program creates if missing. No other option may name a file
  /// there as checkpoints are named.
  void writesCheckpoints(std::string option, const std::filesystem::path& directory);

  /// Paths are equal if they lead to the same file, also through links or other spellings.
  /// @throws muster::InvalidArgument naming two options and their file; muster::FileError for a file or a
  ///         directory that cannot be written, a report or curves that are not of these programs, or a file
  ///         of other content than the one that would replace it.
  void check() const;
  /// Checks only for equal paths; writes nothing.
  void checkNames() const;

 private:
  struct Entry {
    std::string option;  // with its dashes
    std::filesystem::path path;
    bool written = false;
    bool inDirectory = false;  // in one of `directories_`, which may not exist yet
    bool checkpoints = false;  // a directory of checkpoints
    std::string replacedBy = {};
    Content content = Content::Any;
  };

  void checkPair(const Entry& one, const Entry& other) const;
  /// @throws muster::FileError for a file that the program would replace by one of other content, or that has
  ///         a name of its own files and is none.
  static void checkReplaced(const Entry& file);

  std::vector<Entry> files_, directories_;
  std::vector<Entry> pictures_;  // directories
};

}  // namespace program
