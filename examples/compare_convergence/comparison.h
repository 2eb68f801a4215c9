#pragma once

#include <optional>
#include <string>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/link_model.h"
#include "examples/compare_convergence/run_record.h"
#include "examples/compare_convergence/summary.h"

namespace convergence {

/// All that the tables, files and the report tell of.
struct Comparison {
  const Grid& grid;
  const std::vector<RunRecord>& runs;  ///< finished so far
  std::vector<ArmSummary> arms = {};   ///< [arm of the grid]
  double target = 0.95;                ///< accuracy
  std::optional<Link> link = {};
  std::string data = {};      ///< as in `MNIST, 60,000 images to train with and 10,000 to test with`
  std::string origin = {};    ///< where the images are from, a sentence
  std::string training = {};  ///< what all arms have in common, a sentence
  std::string testing = {};   ///< likewise
  std::string made = {};      ///< when, by which version and on what processor, a sentence
  std::vector<std::string> recipe = {};  ///< the options, `--name value` each

  bool complete() const { return runs.size() == grid.runs(); }
};

}  // namespace convergence
