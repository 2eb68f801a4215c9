#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::detail {

/// A field of a run file, as a table shows it.
struct FieldLine {
  std::string path;         ///< as in "listeners.checkpoints.directory"
  std::string values;       ///< as in "whole number", or the words that it may be
  std::string preset;       ///< its default as JSON; "": it has none
  std::string description;  ///< a phrase without a full stop
};

/// All fields of a run file in its order, from its schema; `network`, `training.strategy` and `compare` as
/// one each.
const std::vector<FieldLine>& fieldLines();

/// The field at a path. @throws std::out_of_range if there is none.
const FieldLine& fieldAt(std::string_view path);

/// The page of the guide about run files, as Markdown: every field with its values, default and description,
/// also those of networks and strategies.
std::string runFilePage();

}  // namespace muster::detail
