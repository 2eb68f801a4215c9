#pragma once

#include <map>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster::test {

/// A store in the memory of one process, for one thread.
class StoredTexts final : public NodeStore {
 public:
  std::string describe() const override { return "a map"; }
  void put(const std::string& name, const std::string& text) override { texts_[name] = text; }
  bool create(const std::string& name, const std::string& text) override {
    return texts_.emplace(name, text).second;
  }
  std::string get(const std::string& name) override {
    const auto found = texts_.find(name);
    return found == texts_.end() ? std::string() : found->second;
  }
  void erase(const std::string& name) override { texts_.erase(name); }
  std::vector<std::string> names(const std::string& prefix) override {
    std::vector<std::string> all;
    for (const auto& [name, text] : texts_)
      if (name.starts_with(prefix)) all.push_back(name);
    return all;
  }

 private:
  std::map<std::string, std::string> texts_;
};

}  // namespace muster::test
