#pragma once

#include <optional>
#include <string>
#include <vector>

#include "examples/compare_convergence/grid.h"
#include "examples/compare_convergence/link_model.h"
#include "examples/compare_convergence/run_record.h"
#include "examples/compare_convergence/summary.h"

namespace convergence {

/// The content of the tables, the files and the report.
struct Comparison {
  const Grid& grid;
  const std::vector<RunRecord>& runs;  ///< finished so far
  std::vector<ArmSummary> arms = {};   ///< [arm of the grid]
  double target = 0.95;                ///< accuracy
  std::optional<Link> link = {};
  std::string data = {};      ///< such as `MNIST, 60,000 images to train with and 10,000 to test with`
  std::string origin = {};    ///< where the images are from, a sentence
  std::string training = {};  ///< settings common to all arms, a sentence
  std::string testing = {};   ///< how the models are tested, a sentence
  std::string made = {};      ///< when, by which version and on what processor, a sentence
  std::vector<std::string> recipe = {};  ///< the options, `--name value` each

  bool complete() const { return runs.size() == grid.runs(); }
};

}  // namespace convergence
