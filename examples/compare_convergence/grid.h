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
  Strategy  ///< one by name
};

/// What the learning rate is multiplied by where a step is taken for `n` times the examples.
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
  std::int64_t frequency = 1;  ///< iterations between merges; 1 but for averaging
  std::int64_t batch = 64;     ///< examples of one worker in an iteration
  std::string updater = "nesterovs";
  double learningRate = 0.01;         ///< as the updater gets it, scaled
  std::int64_t synchronousUntil = 0;  ///< iterations that merge every time before `frequency` holds

  /// Of Mode::Strategy: its name and options, as in `diloco:rate=0.5:momentum=0.8`; `frequency` is `every`.
  /// "speeds=half" is of one worker at half speed, whatever their number.
  std::string strategy = {};

  bool operator==(const Arm&) const = default;
  void fields(muster::Fields& f);
};

/// Whether the replicas' distance is measured: elsewhere their parameters are equal.
inline bool measuresDistance(const Arm& arm) {
  return arm.mode == Mode::Averaging;
}

/// What is to be combined, each list in the order of the report.
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

/// Arms that are looked at together: the same workers, batch, updater and scaling, and one worker beside
/// them.
struct Panel {
  std::int64_t workers = 2;
  std::int64_t batch = 64;  ///< of each worker
  UpdaterChoice updater;
  Scaling scaling = Scaling::None;
  std::vector<std::size_t> arms;  ///< indices into `Grid::arms`

  bool operator==(const Panel&) const = default;
};

/// The arms of a comparison, each once; every arm is trained with every seed.
struct Grid {
  std::vector<Arm> arms;
  std::vector<Panel> panels;
  std::vector<std::int64_t> seeds;

  std::size_t runs() const { return arms.size() * seeds.size(); }
};

/// The strategy of an arm of Mode::Strategy. @throws InvalidArgument naming what is wrong with it.
muster::AnyStrategy strategyOf(const Arm& arm);

/// Combines the lists. Each panel begins with one worker at the batch B and one at W B, the latter with the
/// learning rate of the W workers. What would train the same twice is one arm: the frequency is of averaging
/// only, and at frequency 1 averaging is synchronous from the beginning.
/// @throws InvalidArgument where there is nothing to compare, naming the list that is empty.
Grid expandGrid(const GridLists& lists);

/// A warning of arms that are the same experiment on a data set of `examples`, where there are any: averaging
/// less often than an epoch has iterations, when it is done at the epoch's end, and arms with fewer batches
/// than workers, so some workers train nothing. Empty otherwise.
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
