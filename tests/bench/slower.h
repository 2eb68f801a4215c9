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
    double before = 0, after = 0;  ///< samples a second, medians
    double factor = 1;             ///< of the speed
    bool certain = false;          ///< every round of one is faster than every round of the other
  };
  /// Each arm that both have. Where both measured the machine, in the same rounds, its pace is divided out.
  std::vector<Change> changes(const std::map<std::string, std::vector<Arm>>& tables) const;

  /// Prints `changes`: what is certainly slower, then what is certainly faster.
  void print(const std::map<std::string, std::vector<Arm>>& tables) const;

 private:
  std::map<std::string, std::vector<Arm>> tables_;
};

}  // namespace muster::bench
