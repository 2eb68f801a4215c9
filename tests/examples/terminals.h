#pragma once

#include <doctest/doctest.h>

#include <csignal>
#include <deque>

#include "tests/examples/convnet.h"

namespace muster::test {

/// The terminals in which a user starts the processes of one training, each in a sandbox with run.json. They
/// find each other by their environment.
class Terminals {
 public:
  enum Kind { Numbered, Elastic };

  explicit Terminals(std::size_t count, Kind kind = Numbered) : all_(count) {
    for (std::size_t n = 0; n < count; ++n) {
      auto& environment = all_[n].environment;
      environment.insert({{"MUSTER_STORE", store.path().string()}, {"MUSTER_INTERFACE", "lo"}});
      if (kind == Numbered)
        environment.insert({{"MUSTER_NODES", std::to_string(count)}, {"MUSTER_NODE", std::to_string(n)}});
    }
  }

  ConvnetRun& operator[](std::size_t node) { return all_[node]; }

  /// Starts `train run.json` with these options and one worker in each. @return [node]
  std::deque<Program> start(const std::string& options) const {
    std::deque<Program> programs;
    for (const auto& terminal : all_)
      programs.emplace_back(
          MUSTER_PROGRAM,
          terminal.launchOf("train run.json --workers 1 --averaging-frequency 2 --batch 32 " + options));
    return programs;
  }
  std::vector<Outcome> train(const std::string& options) const {
    std::vector<Outcome> outcomes;
    for (auto& program : start(options)) outcomes.push_back(program.wait());
    CHECK(std::filesystem::is_empty(store.path()));
    return outcomes;
  }
  /// The outcomes of a training that must succeed in each.
  std::vector<Outcome> succeed(const std::string& options) const {
    auto outcomes = train(options);
    for (const auto& outcome : outcomes) succeeded(outcome);
    return outcomes;
  }

  TemporaryDirectory store;

 private:
  std::deque<ConvnetRun> all_;
};

}  // namespace muster::test
