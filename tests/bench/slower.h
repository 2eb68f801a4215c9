#pragma once

#include <boost/json.hpp>
#include <map>
#include <string>
#include <vector>

#include "tests/bench/arms.h"

namespace muster::bench {

/// Measurements of an earlier call, written by writeJson.
class OldMeasurements {
 public:
  /// @throws std::runtime_error if the file cannot be read or has another form.
  explicit OldMeasurements(const std::string& file);

  struct Change {
    std::string table, arm;
    double before = 0, after = 0;  ///< samples, or calls of a kernel, per second, medians
    double factor = 1;             ///< ratio of the speeds
    bool certain = false;          ///< every round of one is faster than every round of the other
  };
  /// Changes of each arm that both measurements have. If both measured the machine in the same rounds, its
  /// speed is divided out; results of kernels are already divided.
  std::vector<Change> changes(const std::map<std::string, std::vector<Arm>>& tables) const;

  /// Prints `changes`, the slowest first; of kernels only those that are certain.
  void print(const std::map<std::string, std::vector<Arm>>& tables) const;

 private:
  std::map<std::string, std::vector<Arm>> tables_;
};

}  // namespace muster::bench
