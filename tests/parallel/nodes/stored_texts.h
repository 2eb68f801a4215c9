#pragma once

#include <doctest/doctest.h>

#include <future>

#include "muster/parallel/nodes/elastic/node_store.h"
#include "tests/support/standard.h"

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

/// Checks an empty store, which two processes have opened.
inline void checkStore(NodeStore& a, NodeStore& b) {
  using Names = std::vector<std::string>;
  CHECK(a.get("lease") == "");
  CHECK(a.create("lease", "a"));
  CHECK_FALSE(b.create("lease", "b"));
  CHECK(b.get("lease") == "a");
  b.put("lease", "two\nlines\n");
  CHECK(a.get("lease") == "two\nlines\n");
  a.put("empty", "");
  CHECK(b.get("empty") == "");
  CHECK(a.names("le") == Names{"lease"});
  CHECK(a.names("").size() == 2);
  CHECK(a.names("x").empty());
  for (const char* const name : {"lease", "lease", "empty"}) a.erase(name);
  CHECK(a.names("").empty());
  std::atomic<int> won = 0;
  std::vector<std::future<void>> all;
  for (int i = 0; i < 8; ++i)
    all.push_back(
        std::async(std::launch::async, [&, i] { won += (i % 2 ? a : b).create("one", "x") ? 1 : 0; }));
  all.clear();  // waits
  CHECK(won == 1);
}

}  // namespace muster::test
