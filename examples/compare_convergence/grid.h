#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/core/base/fields.h"
#include "muster/parallel/strategies/any_strategy.h"

namespace convergence {

/// How the workers of an arm learn from each other.
enum class Mode {
  Single,  ///< one worker alone
  Averaging,
  Synchronous,
  Shared,
  Strategy  ///< a strategy by its name
};

/// Factor of the learning rate for a step on `n` times the examples.
enum class Scaling {
  None,        ///< 1
  Linear,      ///< n. Source: Goyal et al. 2017
  SquareRoot,  ///< the square root of n. Source: Krizhevsky 2014
};

double scalingFactor(Scaling scaling, std::int64_t workers);

struct UpdaterChoice {
  std::string name;
  double learningRate = 0.01;  ///< of one worker
  bool operator==(const UpdaterChoice&) const = default;
};

/// One way to train.
struct Arm {
  Mode mode = Mode::Single;
  std::int64_t workers = 1;
  /// Iterations between merges; 1 unless averaging or by name. 0: the strategy has no option `every`, as it
  /// merges in every iteration or has options of its own for this.
  std::int64_t frequency = 1;
  std::int64_t batch = 64;  ///< examples per worker and iteration
  std::string updater = "nesterovs";
  double learningRate = 0.01;         ///< after scaling
  std::int64_t synchronousUntil = 0;  ///< iterations at the start that all merge; then `frequency`

  /// For Mode::Strategy: the strategy's name and options, such as `diloco:rate=0.5:momentum=0.8`; `frequency`
  /// is `every`, if not 0. "speeds=half" puts one worker at half speed, whatever the number of workers.
  std::string strategy = {};

  bool operator==(const Arm&) const = default;
  void fields(muster::Fields& f);
};

/// Whether to measure the replicas' distance; in the other modes their parameters are equal.
inline bool measuresDistance(const Arm& arm) {
  return arm.mode == Mode::Averaging;
}

/// The lists to combine, each in the order of the report.
struct GridLists {
  std::vector<Mode> modes;
  std::vector<std::int64_t> workers;
  std::vector<std::int64_t> frequencies;
  std::vector<std::int64_t> batches;
  std::vector<UpdaterChoice> updaters;
  std::vector<Scaling> scalings;
  std::vector<std::int64_t> synchronousUntil;
  std::vector<std::int64_t> seeds;
  std::vector<std::string> strategies = {};  ///< as `Arm::strategy`
};

/// Arms that are compared with each other: the same workers, batch, updater and scaling; and the arms of one
/// worker.
struct Panel {
  std::int64_t workers = 2;
  std::int64_t batch = 64;  ///< of each worker
  UpdaterChoice updater;
  Scaling scaling = Scaling::None;
  std::vector<std::size_t> arms;  ///< indices into `Grid::arms`

  bool operator==(const Panel&) const = default;
};

/// The arms of a comparison, without duplicates; every arm is trained with every seed.
struct Grid {
  std::vector<Arm> arms;
  std::vector<Panel> panels;
  std::vector<std::int64_t> seeds;

  std::size_t runs() const { return arms.size() * seeds.size(); }
};

/// The strategy of an arm of Mode::Strategy. @throws InvalidArgument naming the error.
muster::AnyStrategy strategyOf(const Arm& arm);

/// Whether some arm merges at each of the frequencies: averaging, or a strategy with the option `every`.
bool usesFrequency(const GridLists& lists);

/// Combines the lists. Each panel begins with one worker at the batch B and one at W B, the latter with the
/// learning rate of the W workers. Equal arms are joined: only averaging and strategies have a frequency, and
/// averaging at frequency 1 has no `synchronousUntil`.
/// @throws InvalidArgument naming the list that is empty.
Grid expandGrid(const GridLists& lists);

/// A warning about degenerate arms on a data set of `examples`: arms that average less than once per epoch
/// (all of these merge at its end only, so they are one experiment), and arms with fewer batches than workers
/// (some workers train nothing). Empty if there are none.
std::string degenerateArms(const Grid& grid, std::int64_t examples);

}  // namespace convergence

namespace muster {

template <>
struct EnumNames<convergence::Mode> {
  static constexpr std::array<std::pair<convergence::Mode, std::string_view>, 5> kNames{
      {{convergence::Mode::Single, "single"},
       {convergence::Mode::Averaging, "averaging"},
       {convergence::Mode::Synchronous, "synchronous"},
       {convergence::Mode::Shared, "shared"},
       {convergence::Mode::Strategy, "strategy"}}};
};

template <>
struct EnumNames<convergence::Scaling> {
  static constexpr std::array<std::pair<convergence::Scaling, std::string_view>, 3> kNames{
      {{convergence::Scaling::None, "none"},
       {convergence::Scaling::Linear, "linear"},
       {convergence::Scaling::SquareRoot, "sqrt"}}};
};

}  // namespace muster
