#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>

#include "muster/core/base/error.h"
#include "muster/core/base/mutex.h"

namespace muster {

/// Creates objects of a family (updaters, schedules, layers, ...) by the type names in files. Thread-safe.
template <typename Interface>
class Registry {
 public:
  using Factory = std::function<std::unique_ptr<Interface>()>;

  /// @param family  its name in error messages, as "updater".
  explicit Registry(std::string family) : family_(std::move(family)) {}

  /// Adding a type again has no effect. @throws InvalidArgument if `type` names another class already.
  void add(std::string_view type, Factory factory) {
    const Lock lock(mutex_);
    const auto found = factories_.find(type);
    if (found != factories_.end()) {
      const std::unique_ptr<Interface> before = found->second(), now = factory();
      const Interface &a = *before, &b = *now;
      require(typeid(a) == typeid(b), "{}: there is a type \"{}\" already; yours needs another name", family_,
              type);
      return;
    }
    factories_.emplace(type, std::move(factory));
  }

  /// @throws InvalidArgument naming the types that exist.
  std::unique_ptr<Interface> make(std::string_view type) const {
    const Lock lock(mutex_);
    if (const auto found = factories_.find(type); found != factories_.end()) return found->second();
    throw InvalidArgument(
        fmt::format("{}: there is no type \"{}\"; there are {}", family_, type, namesUnderLock()));
  }

  bool contains(std::string_view type) const {
    const Lock lock(mutex_);
    return factories_.contains(type);
  }

  /// The types that exist, in alphabetical order, as in "adam, sgd".
  std::string names() const {
    const Lock lock(mutex_);
    return namesUnderLock();
  }

 private:
  std::string namesUnderLock() const MUSTER_REQUIRES(mutex_) {
    std::string names;
    for (const auto& [name, factory] : factories_) names += (names.empty() ? "" : ", ") + name;
    return names;
  }

  const std::string family_;
  mutable Mutex mutex_;
  std::map<std::string, Factory, std::less<>> factories_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace muster
