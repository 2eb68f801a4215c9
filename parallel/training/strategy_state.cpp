#include "muster/parallel/training/strategy_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <vector>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/training_state.h"
#include "muster/core/ops/linear_combination.h"
#include "muster/parallel/exchange/own_updates.h"
#include "muster/parallel/strategies/saved_numbers.h"

namespace muster {
namespace {

bool isOfReplicas(const StrategyState& state) {
  return state.declared.place != StrategyBlock::Place::MergedCopy;
}

bool isOfNodes(const StrategyState& state) {
  return state.declared.place == StrategyBlock::Place::Node;
}

/// Whether a part of the block is on another node.
bool isElsewhere(const StrategyState& state) {
  return !std::ranges::all_of(state.values, &Tensor::defined);
}

/// The shape of a block in a file: one tensor, or those of all workers or senders in order.
Shape savedShape(const StrategyState& state) {
  const Shape& shape = state.values.front().shape();
  return isOfReplicas(state) ? shape.prepend(static_cast<std::int64_t>(state.apart)) : shape;
}

/// Whether a saved tensor has the block's type and shape.
bool fits(const Tensor& saved, const StrategyState& state) {
  return saved.shape() == savedShape(state) && saved.dtype() == state.values.front().dtype();
}

/// The part of a saved tensor that is worker w's.
Tensor savedPart(const StrategyState& state, const Tensor& saved, std::size_t w) {
  const Tensor& own = state.values[w];
  return isOfReplicas(state)
             ? saved.slice(static_cast<std::int64_t>(w % state.apart) * own.elements(), own.shape())
             : saved;
}

/// A damaged file may hold anything.
template <typename T>
void requirePossibleIn(const Tensor& saved, const StrategyBlock& declared) {
  const std::span<const T> values = saved.span<T>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<double>(values[i]);
    requireSaved(std::isfinite(value), "strategy state: element {} of \"{}\" is {}, which is impossible", i,
                 declared.name, value);
    if (declared.counts) detail::requireCount(declared.name, value, "as a count");
  }
}

void requirePossible(const Tensor& saved, const StrategyBlock& declared) {
  saved.dtype() == DType::Float64 ? requirePossibleIn<double>(saved, declared)
                                  : requirePossibleIn<float>(saved, declared);
}

/// What of other workers or senders was saved, in the shape of this block: each gets their mean. Undefined if
/// the block does not permit that, or the values are of another model.
Tensor meanOfOthers(const StrategyState& state, const Tensor& saved, std::string_view rule) {
  const Tensor& own = state.values.front();
  const Shape& shape = saved.shape();
  if (!state.declared.meanForOthers || !isOfReplicas(state) || saved.dtype() != own.dtype() ||
      shape.rank() == 0 || shape[0] < 1 || shape.dropFirst() != own.shape())
    return {};
  requirePossible(saved, state.declared);
  logInfo("the saved {} of {} is of {}, now there are {}: each begins with its mean", state.declared.name,
          rule, plural(shape[0], "worker or node", "workers or nodes"), state.apart);
  const Tensor mean = meanOf(saved, std::vector<double>(static_cast<std::size_t>(shape[0]), 1));
  const Tensor all = Tensor::empty(savedShape(state), own.dtype());
  for (std::size_t w = 0; w < state.apart; ++w) {
    Tensor part = savedPart(state, all, w);
    copy(mean, part);
  }
  return all;
}

/// A saved block in this block's shape; undefined if it cannot be used, which is logged.
/// @param means  whether it may be the mean of other workers.
Tensor fitted(const StrategyState& state, const Tensor& saved, bool means, std::string_view rule) {
  if (fits(saved, state)) return saved;
  if (const Tensor mean = means ? meanOfOthers(state, saved, rule) : Tensor(); mean.defined()) return mean;
  logInfo(
      "the saved {} of {} is {}, so it was of other numbers of workers or nodes, or of another model; it is "
      "reset",
      state.declared.name, rule, saved.toString());
  return {};
}

bool isSaved(const StrategyState& state, const Tensor& saved) {
  for (std::size_t w = 0; w < state.values.size(); ++w)
    if (state.values[w].defined() && !sameBytes(state.values[w], savedPart(state, saved, w))) return false;
  return true;
}

/// @param together  all nodes call it: takes the values of all.
void save(const StrategyState& state, Exchange& exchange, bool together, const Tensor& into) {
  if (together && exchange.nodes() > 1 && isOfReplicas(state))
    return exchange.nodeGroup()->gather(state, into);
  for (std::size_t w = 0; w < state.apart; ++w) {
    Tensor part = savedPart(state, into, w);
    copy(state.values[w], part);
  }
}

void load(const Tensor& saved, const StrategyState& state) {
  requirePossible(saved, state.declared);
  for (std::size_t w = 0; w < state.values.size(); ++w) {
    Tensor values = state.values[w];
    if (values.defined()) copy(savedPart(state, saved, w), values);
  }
}

/// The section that holds a block's values; nothing if the model holds them, or nothing needs them.
std::optional<Section> sectionOf(const StrategyState& state) {
  if (state.declared.name == kOwnUpdates) return Section::OwnUpdates;
  if (!state.declared.saved) return {};
  if (state.declared.inFlight) return Section::InFlight;
  const bool mayLack = state.declared.place == StrategyBlock::Place::Replica;
  return mayLack ? std::optional(Section::OfWorkers) : std::nullopt;
}

std::string nameIn(Section section, const StrategyState& state) {
  const std::string_view prefix = section == Section::InFlight    ? "in flight."
                                  : section == Section::OfWorkers ? "of workers."
                                                                  : "";
  return fmt::format("{}{}", prefix, state.declared.name);
}

/// A block's values of all nodes, as they are saved.
Tensor valuesOfAll(const StrategyState& state, Exchange& exchange) {
  const Tensor all = Tensor::zeros(savedShape(state), state.values.front().dtype());
  save(state, exchange, /*together=*/true, all);
  return all;
}

/// @param whose  for the message.
void take(const Tensor* saved, std::string_view whose, const StrategyState& state) {
  requireSaved(saved && fits(*saved, state), "training state: \"{}\" {} is {}, which is impossible",
               state.declared.name, whose, saved ? saved->toString() : std::string("missing"));
  load(*saved, state);
}

/// The parameters in a block's type.
Tensor parametersAs(DType type, const Tensor& parameters) {
  const Tensor from = copyTo(parameters, Device::cpu());
  Tensor to = Tensor::empty(from.shape(), type);
  Context context;
  linearCombination(std::array{Term{1, from}}, to, 0, to.elements(), context);
  return to;
}

void start(const StrategyState& state, const Exchange& exchange) {
  const bool fromParameters =
      state.declared.start == StrategyBlock::Start::Parameters && state.declared.numbers == 0;
  const Tensor& first = *std::ranges::find_if(state.values, &Tensor::defined);
  // All merged copies are equal, and so are all replicas: all workers start from the same values.
  const Tensor begun = fromParameters
                           ? parametersAs(first.dtype(), exchange.block(BlockKind::Parameters).mergedCopy())
                           : Tensor::zeros(first.shape(), first.dtype());
  for (std::size_t w = 0; w < state.values.size(); ++w) {
    Tensor values = state.values[w];
    if (values.defined()) copy(begun, values);
  }
}

}  // namespace

void copyToAll(const Tensor& from, std::span<const Tensor> targets) {
  for (std::size_t w = 0; w < targets.size(); ++w) {
    Tensor target = targets[w];
    const bool again = std::ranges::find(targets.first(w), target.raw(), &Tensor::raw) != targets.begin() + w;
    if (target.defined() && !again) copy(from, target);
  }
}

bool sameBytes(const Tensor& a, const Tensor& b) {
  if (a.raw() == b.raw() && a.bytes() == b.bytes()) return true;
  const auto onCpu = [](const Tensor& t) { return t.device().isCpu() ? t : copyTo(t, Device::cpu()); };
  const Tensor x = onCpu(a), y = onCpu(b);
  return x.bytes() == y.bytes() && std::memcmp(x.raw(), y.raw(), x.bytes()) == 0;
}

Tensor meanOf(const Tensor& all, std::span<const double> weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (!(total > 0)) return {};
  const Shape one = all.shape().dropFirst();
  std::vector<Term> terms;
  for (std::size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0)
      terms.push_back({weights[i] / total, all.slice(static_cast<std::int64_t>(i) * one.elements(), one)});
  const Tensor mean = Tensor::empty(one, all.dtype());
  Context context;
  linearCombination(terms, mean, 0, mean.elements(), context);
  return mean;
}

void loadStrategyState(Exchange& exchange, Model& model, bool stale, bool means, std::string_view rule) {
  for (const StrategyState& state : exchange.strategyBlocks()) {
    const Tensor* const found = findValues(model.strategyState(), state.declared.name);
    const Tensor saved = found ? fitted(state, *found, means, rule) : Tensor();
    if (!saved.defined() || (stale && isSaved(state, saved)))
      start(state, exchange);
    else
      load(saved, state);
  }
}

void prepareSavedState(const Exchange& exchange, Model& model, bool afterFailure, bool together) {
  auto& all = model.strategyState();
  std::vector<NamedValues> room;
  for (const StrategyState& state : exchange.strategyBlocks()) {
    const bool canBeTaken = !isElsewhere(state) || (isOfNodes(state) && together);
    if (!state.declared.saved || state.declared.inFlight || !canBeTaken ||
        (afterFailure && isOfReplicas(state)))
      continue;
    const Tensor* const found = findValues(all, state.declared.name);
    room.push_back(
        {state.declared.name, found && fits(*found, state)
                                  ? *found
                                  : Tensor::zeros(savedShape(state), state.values.front().dtype())});
  }
  all = std::move(room);
}

void saveStrategyState(Exchange& exchange, Model& model, bool together) {
  for (const NamedValues& saved : model.strategyState())
    save(exchange.strategyBlock(saved.name), exchange, together, saved.values);
}

void collectStrategyState(Exchange& exchange, Model& model) {
  auto& all = model.strategyState();
  for (const StrategyState& state : exchange.strategyBlocks()) {
    const bool lacking = isOfNodes(state) && state.declared.saved && !state.declared.inFlight &&
                         isElsewhere(state) && findValues(all, state.declared.name) == nullptr;
    if (lacking) all.push_back({state.declared.name, valuesOfAll(state, exchange)});
  }
}

void addSection(TrainingState& all, Section section, Model& model, Exchange& exchange, bool pending) {
  const bool ofWorkers = section == Section::OfWorkers;
  for (const StrategyState& state : exchange.strategyBlocks()) {
    if (sectionOf(state) != section || (ofWorkers && state.declared.zeroUnlessPending && !pending)) continue;
    const Tensor values = valuesOfAll(state, exchange);
    // The model has the numbers of all workers at the end of a training; before it those of this node
    // alone.
    const Tensor* const ofModel =
        ofWorkers ? findValues(model.strategyState(), state.declared.name) : nullptr;
    if (ofModel == nullptr || !sameBytes(*ofModel, values)) all.push_back({nameIn(section, state), values});
  }
}

void takeSection(const TrainingState& all, Section section, Exchange& exchange, bool sameWorkers,
                 std::string_view rule) {
  const bool inFlight = section == Section::InFlight;
  for (const StrategyState& state : exchange.strategyBlocks()) {
    if (sectionOf(state) != section) continue;
    const Tensor* const saved = findValues(all, nameIn(section, state));
    if (saved == nullptr && !inFlight) continue;
    if (sameWorkers)
      take(saved, inFlight ? "of what is in flight" : "of the workers", state);
    else if (const Tensor fit = fitted(state, *saved, /*means=*/true, rule); fit.defined())
      load(fit, state);
  }
}

}  // namespace muster
