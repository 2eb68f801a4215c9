#include "muster/parallel/training/resumption.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <tuple>

#include "muster/core/base/log.h"
#include "muster/core/base/plural.h"
#include "muster/core/nn/training_state.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/strategies/saved_numbers.h"
#include "muster/parallel/training/named_call.h"

namespace muster {
namespace {

constexpr std::string_view kRounds = "rounds", kWeights = "weights", kExamples = "examples", kRule = "rule",
                           kOptions = "rule options", kUnmerged = "unmerged";

/// What a checkpoint holds of a contribution that is not merged, in this order.
constexpr std::tuple kOfContribution(&Contribution::scoreSum, &Contribution::weight,
                                     &Contribution::plainScoreSum, &Contribution::batches,
                                     &Contribution::examples, &Contribution::iteration);

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

/// Calls `use(number)` for each of these numbers.
template <typename OfContribution, typename Use>
void forEachNumber(OfContribution& contribution, Use use) {
  std::apply([&](auto... numbers) { (use(contribution.*numbers), ...); }, kOfContribution);
}

void readUnmerged(const TrainingState& state, Ledger& ledger) {
  constexpr std::size_t kNumbers = std::tuple_size_v<decltype(kOfContribution)>;
  const std::size_t workers = ledger.workers.size();
  const auto numbers = numbersIn<double>(state, kUnmerged, 0);
  const bool possible = std::ranges::all_of(
      numbers, [](double number) { return std::isfinite(number) && std::abs(number) < 0x1p53; });
  requireSaved(numbers.size() == workers * kNumbers && possible, "training state: \"{}\" cannot be of {}",
               kUnmerged, plural(workers, "worker"));
  auto next = numbers.begin();
  for (Tally& worker : ledger.workers) {
    Contribution& c = worker.unmerged;
    forEachNumber(c, [&](auto& number) { number = static_cast<std::decay_t<decltype(number)>>(*next++); });
    worker.examples -= c.examples;
    requireSaved(
        c.weight >= 0 && c.batches >= 0 && c.examples >= 0 && c.iteration >= 0 && worker.examples >= 0,
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
std::string lostWork(const Ledger& ledger) {
  std::int64_t batches = 0;
  for (const Tally& worker : ledger.workers) batches += worker.unmerged.batches;
  std::string lost;
  if (batches > 0)
    lost = fmt::format("; {} trained and not merged {} lost",
                       plural(batches, "batch that was", "batches that were"), batches == 1 ? "is" : "are");
  if (!ledger.flights.inFlight().empty()) lost += "; merges that were launched and have not landed are lost";
  return lost;
}

}  // namespace

RuleText ruleText(AnyStrategy strategy, bool all) {
  RuleText rule{.description = strategy.make()->describe(), .options = {}};
  for (const auto& option : optionsOf(strategy)) {
    if (!all && option.name.starts_with("measure")) continue;  // changes only what listeners receive
    rule.options += fmt::format("{}{}={}", rule.options.empty() ? "" : ",", option.name, option.preset);
  }
  return rule;
}

Resumption resumptionOf(Model& model, const DataSetIterator& data, const AnyStrategy& strategy, int workers) {
  const auto position = callIterator("report its size", [&] { return resumePosition(model, data); });
  if (!position) return {};
  Resumption resumed{.ledger = {.begun = *position}, .any = true};
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
  Ledger saved = savedLedger(state);
  if (saved.workers.size() != static_cast<std::size_t>(workers)) {
    logInfo(
        "the checkpoint has {}, this training has {}: each starts from the merged model, with the "
        "mean of updater states and residuals that workers kept; other state of their own is reset{}",
        plural(saved.workers.size(), "worker"), workers, lostWork(saved));
    return resumed;
  }
  callIterator("report its size", [&] { requirePossibleLandings(saved.landingsBefore, *position, data); });
  if (saved.landingsBefore == 0 && strategy.make()->traits(workers).arrivals)
    saved.flights = {};  // all workers begin with the merged copy
  saved.begun = *position;
  resumed.ledger = std::move(saved);
  resumed.replicas = true;
  return resumed;
}

Ledger savedLedger(const TrainingState& state) {
  std::array<std::int64_t, 7> numbers;
  std::ranges::copy(numbersIn<std::int64_t>(state, kRounds, std::ssize(numbers)).first(numbers.size()),
                    numbers.begin());
  const auto [finished, iterations, launch, land, inFlight, landings, epochIteration] = numbers;
  const auto weights = numbersIn<double>(state, kWeights, 0);
  const auto examples = numbersIn<std::int64_t>(state, kExamples, 1);
  requireSaved(std::ranges::all_of(examples, detail::isCounted<std::int64_t>),
               "training state: \"{}\" has numbers that workers cannot have trained", kExamples);
  requireSaved(detail::isCounted(finished),
               "training state: \"{}\" has {} finished rounds, which is impossible", kRounds, finished);
  requireSaved(std::ranges::all_of(weights, detail::isCounted<double>),
               "training state: \"{}\" must be finite and not negative", kWeights);
  requireSaved(detail::isCounted(landings) && detail::isCounted(epochIteration),
               "training state: \"{}\" has {} landings after iteration {}, which is impossible", kRounds,
               landings, epochIteration);
  Ledger ledger{.roundsBefore = finished,
                .epochIteration = epochIteration,
                .plan = {.iterations = iterations, .launch = fragmentsIn(launch), .land = fragmentsIn(land)},
                .flights = FragmentFlights(examples.size()),
                .landingsBefore = landings};
  for (const std::int64_t trained : examples) ledger.workers.push_back({.examples = trained});
  ledger.flights.resume(fragmentsIn(inFlight), weights);
  if (ledger.landingsBefore > 0) readUnmerged(state, ledger);
  return ledger;
}

void addLedger(TrainingState& state, const Ledger& ledger, const RuleText& rule) {
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
  state.push_back({std::string(kExamples), numbersAs<std::int64_t>(examples(ledger))});
  if (!landed) return;
  std::vector<double> unmerged;
  for (const Tally& worker : ledger.workers)
    forEachNumber(worker.unmerged, [&](auto number) { unmerged.push_back(static_cast<double>(number)); });
  state.push_back({std::string(kUnmerged), numbersAs<double>(unmerged)});
}

void addRule(TrainingState& state, const RuleText& rule) {
  state.push_back({std::string(kRule), textAs(rule.description)});
  state.push_back({std::string(kOptions), textAs(rule.options)});
}

}  // namespace muster
