#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "muster/parallel/nodes/elastic/node_store.h"

namespace muster {

/// A directory that all nodes share, with a file for each text.
class DirectoryStore final : public NodeStore {
 public:
  /// @param directory  is created if it does not exist. @throws NodeFailure if that is impossible.
  explicit DirectoryStore(std::filesystem::path directory);
  std::string describe() const override { return directory_.string(); }
  void put(const std::string& name, const std::string& text) override { place(name, text, true); }
  bool create(const std::string& name, const std::string& text) override { return place(name, text, false); }
  std::string get(const std::string& name) override;
  void erase(const std::string& name) override;
  std::vector<std::string> names(const std::string& prefix) override;
  void eraseAll(const std::string& prefix) override {
    for (const auto& name : files(prefix)) erase(name);
  }

 private:
  /// @return false if the text exists and is not replaced.
  bool place(const std::string& name, const std::string& text, bool replace);
  /// The names of all files that begin with `prefix`, also incomplete ones.
  std::vector<std::string> files(const std::string& prefix) const;

  const std::filesystem::path directory_;
  const std::string number_;  // random, so that no two stores write to one file
  std::atomic<std::uint64_t> parts_{0};
};

}  // namespace muster
