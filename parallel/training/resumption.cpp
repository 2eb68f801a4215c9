#include "muster/parallel/training/resumption.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/training_state.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"
#include "muster/parallel/training/named_call.h"
#include "muster/parallel/training/strategy_state.h"

namespace muster {
namespace {

constexpr std::string_view kRounds = "rounds", kWeights = "weights", kExamples = "examples", kRule = "rule",
                           kOptions = "rule options", kUnmerged = "unmerged";
constexpr std::string_view kMerged = "merged.", kReplicas = "replicas.", kMean = "mean.";

enum RoundsField { Finished, Iterations, Launch, Land, InFlight, Landings, EpochIteration, kRoundsFields };
enum ContributionField { ScoreSum, Weight, PlainScoreSum, Batches, Examples, Iteration, kContributionFields };

std::string nameOf(std::string_view prefix, const SharedBlock& block) {
  return fmt::format("{}{}", prefix, block.name);
}

Tensor textAs(std::string_view text) {
  Tensor bytes = Tensor::empty({static_cast<std::int64_t>(text.size())}, DType::UInt8);
  std::memcpy(bytes.raw(), text.data(), text.size());
  return bytes;
}

std::string textIn(const TrainingState& state, std::string_view name) {
  const Tensor* const bytes = findValues(state, name);
  if (bytes == nullptr || bytes->dtype() != DType::UInt8) return {};
  return {static_cast<const char*>(bytes->raw()), bytes->bytes()};
}

FragmentSet fragmentsIn(std::int64_t bits) {
  return {static_cast<std::uint64_t>(bits)};
}

void addContribution(std::vector<double>& numbers, const Contribution& c) {
  for (const double number : {c.scoreSum, c.weight, c.plainScoreSum, static_cast<double>(c.batches),
                              static_cast<double>(c.examples), static_cast<double>(c.iteration)})
    numbers.push_back(number);
}

Contribution contributionIn(std::span<const double> numbers) {
  const auto count = [&](ContributionField field) { return static_cast<std::int64_t>(numbers[field]); };
  return {.scoreSum = numbers[ScoreSum],
          .weight = numbers[Weight],
          .plainScoreSum = numbers[PlainScoreSum],
          .batches = count(Batches),
          .examples = count(Examples),
          .iteration = count(Iteration)};
}

void readUnmerged(const TrainingState& state, Ledger& ledger) {
  const std::size_t workers = ledger.workers.size();
  const auto numbers = numbersIn<double>(state, kUnmerged, 0);
  const bool possible = std::ranges::all_of(
      numbers, [](double number) { return std::isfinite(number) && std::abs(number) < 0x1p53; });
  requireSaved(numbers.size() == workers * kContributionFields && possible,
               "training state: \"{}\" cannot be of {}", kUnmerged, plural(workers, "worker"));
  for (std::size_t w = 0; w < workers; ++w) {
    const Contribution& c = ledger.workers[w].unmerged =
        contributionIn(numbers.subspan(w * kContributionFields, kContributionFields));
    requireSaved(c.weight >= 0 && c.batches >= 0 && c.examples >= 0 && c.iteration >= 0,
                 "training state: \"{}\" has negative numbers where none may be negative", kUnmerged);
  }
}

/// Resuming repeats the order of the landings, one by one: refuses more than the trained batches allow.
void requirePossibleLandings(std::int64_t landings, const EpochPosition& position,
                             const DataSetIterator& data) {
  const auto batches = position.nextBatch + static_cast<std::int64_t>(position.trainedLater.size());
  const auto examples = std::min(position.examples, data.examples().value_or(position.examples));
  requireSaved(
      landings <= std::min(batches, examples),
      "training state: \"{}\" has {} landings in an epoch with {} trained batches of {} examples in total, "
      "which is impossible",
      kRounds, landings, batches, examples);
}

/// For the log: what is lost if all workers start from the merged model, though the checkpoint's position
/// counts it as trained.
std::string lostWork(const TrainingState& state, std::size_t workers) {
  const Ledger ledger = savedLedger(state, workers);
  std::int64_t batches = 0;
  for (const Tally& worker : ledger.workers) batches += worker.unmerged.batches;
  std::string lost;
  if (batches > 0)
    lost = fmt::format("; {} trained and not merged {} lost",
                       plural(batches, "batch that was", "batches that were"), batches == 1 ? "is" : "are");
  if (!ledger.flights.inFlight().empty()) lost += "; merges that were launched and have not landed are lost";
  return lost;
}

/// Worker w's part of what `addValues` saved: the values of all workers, or one set for all.
Tensor partOf(const Tensor& saved, std::size_t w, const Tensor& like) {
  const std::int64_t own = saved.shape()[0] == 1 ? 0 : static_cast<std::int64_t>(w);
  return saved.slice(own * like.elements(), like.shape());
}

/// @param what  the saved form of the block, for the message.
void requireFits(const Tensor& saved, const Shape& shape, const Tensor& like, std::string_view what,
                 const SharedBlock& block) {
  requireSaved(saved.shape() == shape && saved.dtype() == like.dtype(),
               "training state: {} of the {} is {}, but the model has {} {}", what, block.name,
               saved.toString(), toString(like.dtype()), shape.toString());
}

/// The replicas in one tensor, or one of them if all are equal.
/// @param collected  the tensor that they are views of, if there is one.
Tensor together(std::span<const Tensor> replicas, const Tensor& collected) {
  const Tensor& first = replicas.front();
  const bool same = std::ranges::all_of(replicas, [&](const Tensor& t) { return sameBytes(t, first); });
  if (!same && collected.defined()) return collected;
  const std::size_t count = same ? 1 : replicas.size();
  Tensor all = Tensor::empty(first.shape().prepend(static_cast<std::int64_t>(count)), first.dtype());
  for (std::size_t w = 0; w < count; ++w) {
    Tensor part = partOf(all, w, first);
    copy(replicas[w], part);
  }
  return all;
}

}  // namespace

RuleText ruleText(AnyStrategy strategy, bool all) {
  RuleText rule{.description = strategy.make()->describe(), .options = {}};
  for (const auto& [name, value, kind, description] : optionsOf(strategy)) {
    if (!all && name.starts_with("measure")) continue;  // changes only what listeners receive
    rule.options += fmt::format("{}{}={}", rule.options.empty() ? "" : ",", name, value);
  }
  return rule;
}

Resumption resumptionOf(Model& model, const DataSetIterator& data, const AnyStrategy& strategy, int workers) {
  const auto position = callIterator("report its size", [&] { return resumePosition(model, data); });
  if (!position) return {};
  Resumption resumed{.position = *position, .any = true};
  const TrainingState& state = model.trainingState();
  const RuleText rule{textIn(state, kRule), textIn(state, kOptions)}, now = ruleText(strategy);
  if (rule.description != now.description || rule.options != now.options) {
    const bool sameWords = rule.description == now.description;
    logInfo(
        "the checkpoint is of a training with {}{}, this one has {}: each worker starts from the merged "
        "model",
        rule.description.empty() ? "one model by itself" : rule.description,
        sameWords ? fmt::format(" ({})", rule.options) : "", sameWords ? now.options : now.description);
    return resumed;
  }
  resumed.values = state;
  if (findValues(state, kExamples) == nullptr) return resumed;  // saved over elastic nodes
  resumed.sameRule = true;
  const auto examples = numbersIn<std::int64_t>(state, kExamples, 1);
  if (examples.size() != static_cast<std::size_t>(workers)) {
    logInfo(
        "the checkpoint has {}, this training has {}: each starts from the merged model, with the "
        "mean of updater states and residuals that workers kept; other state of their own is reset{}",
        plural(examples.size(), "worker"), workers, lostWork(state, examples.size()));
    return resumed;
  }
  requireSaved(std::ranges::all_of(examples, detail::isCounted<std::int64_t>),
               "training state: \"{}\" has numbers that workers cannot have trained", kExamples);
  resumed.examples.assign(examples.begin(), examples.end());
  resumed.replicas = true;
  Ledger ledger = savedLedger(state, examples.size());
  callIterator("report its size", [&] { requirePossibleLandings(ledger.landingsBefore, *position, data); });
  if (ledger.landingsBefore > 0 || !strategy.make()->traits(workers).arrivals)
    resumed.ledger = std::move(ledger);
  return resumed;
}

Ledger savedLedger(const TrainingState& state, std::size_t workers) {
  const auto numbers = numbersIn<std::int64_t>(state, kRounds, kRoundsFields);
  const auto weights = numbersIn<double>(state, kWeights, 0);
  requireSaved(detail::isCounted(numbers[Finished]),
               "training state: \"{}\" has {} finished rounds, which is impossible", kRounds,
               numbers[Finished]);
  requireSaved(std::ranges::all_of(weights, detail::isCounted<double>),
               "training state: \"{}\" must be finite and not negative", kWeights);
  requireSaved(detail::isCounted(numbers[Landings]) && detail::isCounted(numbers[EpochIteration]),
               "training state: \"{}\" has {} landings after iteration {}, which is impossible", kRounds,
               numbers[Landings], numbers[EpochIteration]);
  Ledger ledger{.roundsBefore = numbers[Finished],
                .epochIteration = numbers[EpochIteration],
                .workers = std::vector<Tally>(workers),
                .plan = {.iterations = numbers[Iterations],
                         .launch = fragmentsIn(numbers[Launch]),
                         .land = fragmentsIn(numbers[Land])},
                .flights = FragmentFlights(workers),
                .landingsBefore = numbers[Landings]};
  ledger.flights.resume(fragmentsIn(numbers[InFlight]), weights);
  if (ledger.landingsBefore > 0) readUnmerged(state, ledger);
  return ledger;
}

void addLedger(TrainingState& state, const Ledger& ledger, const RuleText& rule,
               std::span<const std::int64_t> examples) {
  const auto bits = [](FragmentSet set) { return static_cast<std::int64_t>(set.bits); };
  const bool landed = landings(ledger) > 0;
  // With arrivals the number of rounds depends on whether listeners are called at landings.
  const std::array numbers{ledger.arrivals ? 0 : ledger.roundsBefore + ledger.rounds,
                           ledger.plan.iterations,
                           bits(ledger.plan.launch),
                           bits(ledger.plan.land),
                           bits(ledger.flights.inFlight()),
                           landings(ledger),
                           landed ? ledger.epochIteration : 0};
  addRule(state, rule);
  state.push_back({std::string(kRounds), numbersAs<std::int64_t>(numbers)});
  state.push_back({std::string(kWeights), numbersAs<double>(ledger.flights.weights())});
  state.push_back({std::string(kExamples), numbersAs<std::int64_t>(examples)});
  if (!landed) return;
  std::vector<double> unmerged;
  for (const Tally& worker : ledger.workers) addContribution(unmerged, worker.unmerged);
  state.push_back({std::string(kUnmerged), numbersAs<double>(unmerged)});
}

void addRule(TrainingState& state, const RuleText& rule) {
  state.push_back({std::string(kRule), textAs(rule.description)});
  state.push_back({std::string(kOptions), textAs(rule.options)});
}

void addValues(TrainingState& state, std::span<const SharedBlock> blocks, std::span<const Tensor> ofModel,
               bool mergedCopiesCount, std::span<const CollectedBlock> collected) {
  for (std::size_t b = 0; b < ofModel.size(); ++b) {
    const SharedBlock& block = blocks[b];
    if (!ofModel[b].defined()) continue;
    const bool counts = mergedCopiesCount && block.hasMergedCopy();
    const Tensor& merged = counts ? block.mergedCopy() : ofModel[b];
    if (!sameBytes(merged, ofModel[b]))
      state.push_back({nameOf(kMerged, block), cloneTensor(copyTo(merged, Device::cpu()))});
    const auto& [ofAll, mean] = collected[b];
    if (mean.defined()) state.push_back({nameOf(kMean, block), mean});
    auto replicas = block.replicas;
    for (std::size_t w = 0; ofAll.defined() && w < replicas.size(); ++w)
      replicas[w] = partOf(ofAll, w, merged);
    std::erase_if(replicas, [](const Tensor& own) { return !own.defined(); });  // on other nodes
    if (!std::ranges::all_of(replicas, [&](const Tensor& own) { return sameBytes(own, merged); }))
      state.push_back({nameOf(kReplicas, block), together(replicas, ofAll)});
  }
}

void takeValues(const TrainingState& state, Exchange& exchange, bool replicas) {
  for (const SharedBlock& block : exchange.blocks()) {
    if (!block.hasMergedCopy()) continue;
    const Tensor& like = block.mergedCopy();
    const auto takeForAll = [&](std::string_view prefix, std::string_view what) {
      const Tensor* const saved = findValues(state, nameOf(prefix, block));
      if (saved == nullptr) return;
      requireFits(*saved, like.shape(), like, what, block);
      copyToAll(*saved, block.mergedCopies);
      copyToAll(*saved, block.replicas);
    };
    takeForAll(kMerged, "the merged copy");
    if (!replicas) takeForAll(kMean, "the mean over the workers");
    const Tensor* const own = findValues(state, nameOf(kReplicas, block));
    if (own == nullptr || !replicas) continue;
    const auto workers = static_cast<std::int64_t>(block.replicas.size());
    const bool one = own->shape().rank() > 0 && own->shape()[0] == 1;
    requireFits(*own, like.shape().prepend(one ? 1 : workers), like, "what the workers have", block);
    for (std::size_t w = 0; w < block.replicas.size(); ++w) {
      Tensor target = block.replicas[w];
      if (target.defined()) copy(partOf(*own, w, like), target);
    }
  }
}

}  // namespace muster
