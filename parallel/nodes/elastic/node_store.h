#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

namespace muster {

/// A random number as text, which no other process draws.
inline std::string drawnNumber() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

/// A store of short texts under names that all processes see, so that they find each other. A text is
/// complete or absent. Thread-safe. All members throw NodeFailure if the store cannot be reached.
class NodeStore {
 public:
  /// Longer texts are not from muster, and count as absent.
  static constexpr std::size_t kMostBytes = 1 << 20;

  virtual ~NodeStore() = default;
  /// As in "the directory /shared/rendezvous".
  virtual std::string describe() const = 0;
  virtual void put(const std::string& name, const std::string& text) = 0;
  /// Stores the text unless the name exists. Only one of all calls for one name returns true.
  virtual bool create(const std::string& name, const std::string& text) = 0;
  /// "" if there is no such text.
  virtual std::string get(const std::string& name) = 0;
  virtual void erase(const std::string& name) = 0;
  /// The names that begin with `prefix`, in no order.
  virtual std::vector<std::string> names(const std::string& prefix) = 0;
  /// Erases all texts whose names begin with `prefix`, and what killed processes left of such texts.
  virtual void eraseAll(const std::string& prefix) {
    for (const auto& name : names(prefix)) erase(name);
  }
};

}  // namespace muster
