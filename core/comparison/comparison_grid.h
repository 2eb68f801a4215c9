#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace muster {

/// One way to train.
struct ComparisonArm {
  std::string name;
  std::vector<std::string> settings = {};  ///< what it sets, as in `every=10`
  bool operator==(const ComparisonArm&) const = default;
};

/// What is compared, and how it is measured.
struct ComparisonGrid {
  std::map<std::string, std::string> common = {};  ///< settings of all arms by name
  std::string contents = {};                       ///< a checksum of the data; empty: not known
  std::int64_t trainExamples = 0, testExamples = 0;
  std::int64_t testEvery = 0;  ///< samples; 0: not given
  std::string metric = {};     ///< accuracy or r2
  std::vector<ComparisonArm> arms = {};
  std::vector<std::int64_t> seeds = {};
  std::vector<std::string> tune = {};  ///< what was tuned, as in `learningRate=0.01,0.1`
};

}  // namespace muster
