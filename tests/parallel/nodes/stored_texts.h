#pragma once

#include <map>
#include <mutex>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster::test {

/// A store in the memory of one process. Thread-safe.
class StoredTexts final : public NodeStore {
 public:
  std::string describe() const override { return "a map"; }
  void put(const std::string& name, const std::string& text) override {
    const std::scoped_lock lock(mutex_);
    texts_[name] = text;
  }
  bool create(const std::string& name, const std::string& text) override {
    const std::scoped_lock lock(mutex_);
    return texts_.emplace(name, text).second;
  }
  std::string get(const std::string& name) override {
    const std::scoped_lock lock(mutex_);
    const auto found = texts_.find(name);
    return found == texts_.end() ? std::string() : found->second;
  }
  void erase(const std::string& name) override {
    const std::scoped_lock lock(mutex_);
    texts_.erase(name);
  }
  std::vector<std::string> names(const std::string& prefix) override {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [name, text] : texts_)
      if (name.starts_with(prefix)) all.push_back(name);
    return all;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string> texts_;  // guarded by mutex_
};

}  // namespace muster::test
