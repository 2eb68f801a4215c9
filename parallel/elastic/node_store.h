#pragma once

#include <string>
#include <vector>

namespace muster {

/// Where processes that know nothing of each other find each other: short texts under names, which all of
/// them see. A text is there as a whole or not at all. Thread-safe. @throws NodeFailure, all members, if the
/// store cannot be reached.
class NodeStore {
 public:
  /// Longer texts are none of ours, and read as if they were not there.
  static constexpr std::size_t kMostBytes = 1 << 20;

  virtual ~NodeStore() = default;
  /// As in "the directory /shared/meeting".
  virtual std::string describe() const = 0;
  virtual void put(const std::string& name, const std::string& text) = 0;
  /// Of all calls for one name one alone returns true; the others' texts are dropped.
  virtual bool create(const std::string& name, const std::string& text) = 0;
  /// "" if there is none.
  virtual std::string get(const std::string& name) = 0;
  virtual void erase(const std::string& name) = 0;
  /// The names that begin so, in no order.
  virtual std::vector<std::string> names(const std::string& prefix) = 0;
};

}  // namespace muster
