#pragma once

#include "tests/fuzz/container.h"

namespace muster::fuzz {

/// Every change of one tensor of some files: each of its first numbers and the last one replaced by each
/// hostile one of its type; the tensor left out, renamed, and with other types and shapes. Of files with
/// equal names of tensors the first one is changed.
class TensorSweep {
 public:
  explicit TensorSweep(std::vector<Container> files);

  std::size_t size() const { return changes_.size(); }
  /// Change `number`, below `size()`. Offsets fit; checksums do not.
  Container at(std::size_t number) const;

 private:
  void add(std::size_t file, const std::string& tensor);

  struct Change {
    std::size_t file;
    std::string tensor;
    std::optional<std::size_t> element;  ///< of its numbers; none: the tensor's description
    std::size_t choice;                  ///< which hostile number or description
  };
  std::vector<Container> files_;
  std::vector<Change> changes_;
};

}  // namespace muster::fuzz
