// The user's code fails, or sleeps, at each of its calls: fit() and evaluate() end with one error that says
// what failed and where, no thread is left, the model holds its last merge, and the same wrapper then trains
// to the same bits as a new wrapper, under rules of each kind, with and without listeners of merges.

#include "muster/core/eval/evaluation.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/faults.h"
#include "tests/parallel/merged_states.h"
#include "tests/support/failure.h"
#include "tests/support/labelled_toy.h"
#include "tests/support/on_merge.h"
#include "tests/support/sanitizers.h"
#include "tests/support/threads_joined.h"
#include "tests/support/whole.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

namespace {

using Bits = std::vector<std::byte>;
using Clock = Faults::Clock;

constexpr std::int64_t kSize = 5;
constexpr int kWorkers = 4;
constexpr std::int64_t kEpochs = 2;
constexpr auto kLongest = kSanitized ? 20s : 2s;  // beyond the user's own call

struct Rule {
  std::string name, options;
  int devices = 0;  // pretended devices
  bool listens = false;

  ParallelWrapper::Builder builder(Model& model, Faults& faults) const {
    auto builder = ParallelWrapper::Builder(model);
    builder.workers(kWorkers).pinThreads(false).prefetchBuffer(1).internals({.pretendedDevices = devices});
    builder.strategy(Faulty{strategyNamed(name, options, kWorkers), &faults});
    return builder;
  }
  std::string text() const {
    return fmt::format("{} {}{}{}", name, options,
                       devices > 0 ? fmt::format(", on {} devices", devices) : std::string(),
                       listens ? ", with a listener" : "");
  }
};

/// Each rule merges several times per epoch, which ends with a partial round. The first six are the short
/// version.
std::vector<Rule> rules() {
  std::vector<Rule> all = {
      {"averaging", "every=2,codec=int8"},
      {"synchronous", "", 2},
      {"overlapped", "every=2,delay=1,codec=int8"},
      {"asynchronous", "every=2,speeds=1,0.5,1,0.7"},
      {"shared", "threshold=fixed,threshold.threshold=0.01,resynchronizationFrequency=2"},
      {"gossip", "graph=ring", 2}};
  if (whole())
    for (const int devices : {0, 1, 2})
      for (const Rule& rule :
           std::initializer_list<Rule>{{"averaging", "every=2"},
                                       {"averaging", "every=2,updaterState=keep"},
                                       {"averaging", "every=2,codec=int8"},
                                       {"synchronous", ""},
                                       {"streaming", "every=2,fragments=1,delay=1,codec=e3m0"},
                                       {"overlapped", "every=2,delay=1,codec=int8"},
                                       {"asynchronous", "every=2,speeds=1,0.5,1,0.7"},
                                       {"gossip", "graph=ring"},
                                       {"hierarchical", "levels=1:2,2:all"},
                                       {"easgd", "every=2,codec=top-k,codec.share=0.5"},
                                       {"adasum", "every=2"}})
        all.push_back({rule.name, rule.options, devices});
  const auto count = all.size();
  for (std::size_t r = 0; r < count; ++r) {
    all.push_back(all[r]);
    all.back().listens = true;
  }
  return all;
}

LabelledToy examples() {
  return LabelledToy(randomBatches(5, 11, 3, kSize, true), kSize, kSize);
}

ToyOptions toy() {
  return {.size = kSize, .training = {.updater = Nesterovs{.learningRate = 0.1}}, .statistics = true};
}

/// Number of faults of each kind, and the longest time until the call ended.
struct Table {
  ~Table() {
    std::string text;
    for (const auto& [kind, count] : counts) text += fmt::format("\n  {:<64} {:>6}", kind, count);
    MESSAGE(fmt::format("{} faults, the longest time to an end {} ms{}", total(),
                        std::chrono::duration_cast<std::chrono::milliseconds>(longest).count(), text));
  }
  long total() const {
    long all = 0;
    for (const auto& [kind, count] : counts) all += count;
    return all;
  }
  void add(const std::string& kind, Clock::duration took) {
    ++counts[kind];
    longest = std::max(longest, took);
    CHECK(took < kLongest);
  }
  std::map<std::string, long> counts;
  Clock::duration longest{};
};

/// The text of the error of a fault, except the number of the batch before a merge. @param worker  the
/// error's
std::string textOf(std::string_view place, std::string_view where, int worker) {
  static const std::map<std::string, std::string, std::less<>> kOfCoordinator = {
      {"iterator: reset", "the data iterator failed in reset to {}"},
      {"iterator: next", "the data iterator failed at {}"},
      {"iterator: size", "the data iterator failed to report its size"},
      {"fitStart", "a listener failed at the start"},
      {"epochStart", "a listener failed at the start of an epoch"},
      {"merge", "a listener failed after {}"},
      {"epochEnd", "a listener failed after {}"},
      {"fitEnd", "a listener failed at the end"},
      {"strategy: blocks", "the strategy failed to name its blocks"},
      {"strategy: traits", "the strategy failed to describe its traits"},
      {"strategy: begin", "the strategy failed to begin"},
      {"strategy: start", "the strategy failed to start"},
      {"strategy: plan", "the first round could not be planned: the strategy failed to plan a round"}};
  static const std::map<std::string, std::string, std::less<>> kOfWorkers = {
      {"model: replicate", "could not be made"},
      {"model: step", "failed in {}"},
      {"model: update", "failed in {}"},
      {"worker listener: iteration", "failed in a listener after {}"}};
  const auto text = [&](std::string_view begin, const std::string& form) {
    return fmt::format("{}{}: boom", begin, fmt::format(fmt::runtime(form), where));
  };
  const auto colon = contains(place, "listener: ") ? place.find(':') + 2 : 0;
  // The first epoch begins before the first iteration, and the first round is planned by the coordinator.
  const bool laterEpoch = place.ends_with("epochStart") && where != "iteration 0";
  const auto found = kOfCoordinator.find(laterEpoch ? "epochEnd" : place.substr(colon));
  const bool ofWorker = place == "strategy: plan" && worker >= 0;
  if (found != kOfCoordinator.end() && !ofWorker)
    return worker == -1 ? text("", found->second) : "no worker is named";
  const std::string name = fmt::format("worker {} on cpu ", worker);
  const auto own = kOfWorkers.find(place);
  return own != kOfWorkers.end() ? text(name, own->second) : name + "failed at the merge after batch ";
}

/// A rule and the result of its training without a fault.
class Grid {
 public:
  Grid(Rule rule, Table& table) : rule_(std::move(rule)), table_(table), fresh_(toy()) {
    fresh_.state();
    ToyModel model(toy());
    auto own = examples();
    FaultyIterator data(faults_, own);
    wrapperOf(model, {recordStates(model, after_)}).fit(data, kEpochs);
    expected_ = model.allBits();
    CHECK(after_.size() >= 5);
    model.copyStateFrom(fresh_);
    auto wrapper = wrapperOf(model, {});
    wrapper.fit(data, kEpochs);
    CHECK(model.allBits() == expected_);
    wrapper.fit(data);
    continued_ = model.allBits();
    faults_.clear();
    trial("", 0, "", 0);
    visits_ = faults_.visits();
  }

  const std::map<std::string, long, std::less<>>& visits() const { return visits_; }

  /// Trains with a fault; "": none.
  void trial(const std::string& failing, long failingAt, const std::string& slow, long slowAt) {
    CAPTURE(rule_.text());
    CAPTURE(failing);
    CAPTURE(failingAt);
    CAPTURE(slow);
    CAPTURE(slowAt);
    const auto threads = awaitRest();
    {
      ToyModel model(toy());
      model.state();
      addFaults(model.control(), faults_);
      auto own = examples();
      FaultyIterator data(faults_, own);
      Listeners listeners = {faultyListener(faults_, ListenerScope::Worker)};
      if (rule_.listens) listeners.push_back(faultyListener(faults_, ListenerScope::Merged));
      auto wrapper = wrapperOf(model, listeners);
      faults_.clear();
      if (!failing.empty()) faults_.failAt(failing, failingAt);
      if (!slow.empty()) faults_.sleepAt(slow, slowAt);
      std::string text;
      int worker = -2;
      try {
        wrapper.fit(data, kEpochs);
      } catch (const TrainingError& error) {
        text = error.what();
        worker = error.worker();
      } catch (const std::exception& error) {
        text = fmt::format("no TrainingError: {}", error.what());
      }
      const auto took = Clock::now() - faults_.left();
      if (failing.empty() && slow.empty()) {
        CHECK(text.empty());
        CHECK(model.allBits() == expected_);
        return;
      }
      count(failing, slow, took);
      CHECK(text.empty() != faults_.struck());
      if (faults_.struck()) {
        CHECK_MESSAGE(text.ends_with(": boom"), text);
        CHECK_MESSAGE(text.starts_with(textOf(failing, faults_.where(), worker)), text);
        CHECK(contains(text, "the strategy failed to plan a round: boom") == (failing == "strategy: plan"));
        if (inTurn_ && (failing == "model: step" || failing == "worker listener: iteration"))
          CHECK(worker == (std::atoi(faults_.where().c_str() + 6) - 1) % kWorkers);  // of "batch ..."
        checkListenersCalledAtEnd();
        CHECK_MESSAGE(holdsLastMerge(model, failing), mergedOf(model));
        faults_.clear();
        checkContinues(wrapper, model, data, failing.ends_with("fitEnd"));
      } else {
        CHECK(model.allBits() == expected_);
      }
      faults_.clear();
      model.copyStateFrom(fresh_);
      wrapper.fit(data, kEpochs);
      CHECK(model.allBits() == expected_);
    }
    CHECK(awaitRest() == threads);
  }

 private:
  ParallelWrapper wrapperOf(Model& model, Listeners listeners) {
    return rule_.builder(model, faults_).listeners(std::move(listeners)).build();
  }
  /// After a failure the wrapper trains its model like a new wrapper; if all was trained when a listener
  /// failed at the end, it continues as without the failure.
  void checkContinues(ParallelWrapper& wrapper, ToyModel& model, DataSetIterator& data, bool allTrained) {
    ToyModel another(toy());
    another.copyStateFrom(model);
    wrapper.fit(data);
    if (!allTrained) wrapperOf(another, {}).fit(data);
    CHECK(model.allBits() == (allTrained ? continued_ : another.allBits()));
  }
  /// Each listener is called once at the end, if one was called at the start.
  void checkListenersCalledAtEnd() const {
    const auto calls = [&](const std::string& event) {
      const auto of = [&](const char* scope) {
        const auto found = faults_.visits().find(scope + event);
        return found == faults_.visits().end() ? 0 : found->second;
      };
      return std::pair(of("worker listener: "), of("merged listener: "));
    };
    const bool begun = calls("fitStart") != std::pair(0L, 0L);
    CHECK(calls("fitEnd") == std::pair(begun ? 1L : 0L, begun && rule_.listens ? 1L : 0L));
  }
  void count(const std::string& failing, const std::string& slow, Clock::duration took) {
    if (faults_.struck())
      table_.add(faults_.slept() ? fmt::format("{} throws while {} lasts", failing, groupOf(slow))
                                 : failing + " throws",
                 took);
    else if (faults_.slept())
      table_.add(slow + " lasts", took);
  }
  /// Whether the model holds the last merge before the fault, of those that the strategy was called for.
  bool holdsLastMerge(ToyModel& model, std::string_view failing) const {
    static constexpr std::array<std::string_view, 4> kInMerge = {
        "strategy: prepare", "strategy: launch", "strategy: land", "strategy: afterReduction"};
    const auto prepared = faults_.visits().find("strategy: prepare");
    const long begun = prepared == faults_.visits().end() ? 0 : prepared->second;
    const bool inMerge =
        std::ranges::any_of(kInMerge, [&](auto place) { return failing.starts_with(place); });
    std::set<long> allowed = {begun - (inMerge ? 1 : 0)};
    // Another thread's failure may come between the reduction of gradients and the updates.
    if (gradient_ && begun > 0) allowed.insert(begun - 1);
    return std::ranges::any_of(allowed, [&](long merges) {
      return after_.at(static_cast<std::size_t>(merges)).contains(mergedOf(model));
    });
  }
  static std::string groupOf(const std::string& place) { return place.substr(0, place.find(':')); }

  const Rule rule_;
  Table& table_;
  ToyModel fresh_;
  Faults faults_;
  Bits expected_;
  Bits continued_;                            // after one more epoch by the same wrapper
  std::vector<std::set<std::string>> after_;  // [merges] the states after so many
  const StrategyTraits traits_ = strategyNamed(rule_.name, rule_.options, kWorkers).make()->traits(kWorkers);
  const bool gradient_ = traits_.localWork == LocalWork::Gradient;
  const bool inTurn_ = !traits_.arrivals;  // batch b goes to worker b mod W
  std::map<std::string, long, std::less<>> visits_;
};

/// The first visits of a place, one in the middle and the last.
std::set<long> momentsOf(long visits) {
  if (kThreadSanitizer) return {visits / 2};  // threads start slowly under ThreadSanitizer
  return {0, std::min(1L, visits - 1), visits / 2, visits - 1};
}

}  // namespace

TEST_CASE("user code fails or blocks, under every rule") {
  Table table;
  for (const auto& rule : rules()) {
    Grid grid(rule, table);
    for (const auto& [place, visits] : grid.visits()) {
      for (const long at : momentsOf(visits)) grid.trial(place, at, "", 0);
      grid.trial("", 0, place, visits / 2);
    }
  }
  if (!kThreadSanitizer) CHECK(table.total() >= (whole() ? 4000 : 800));
}

TEST_CASE("user code fails while another call of it blocks") {
  Table table;
  for (const auto& rule : rules()) {
    Grid grid(rule, table);
    const auto& visits = grid.visits();
    // Places that make other workers wait: a step, an update, a listener, and a merge (in a codec, workers
    // wait for each other).
    for (const std::string slow : {"model: step", "model: update", "worker listener: iteration",
                                   "merged listener: merge", "strategy: contribute", "strategy: prepare",
                                   "strategy: launch", "strategy: land", "strategy: afterReduction"})
      for (const long at : {2L, 5L}) {
        if (const auto found = visits.find(slow); found == visits.end() || found->second <= at) continue;
        // The reader is ahead: it is at the tenth batch or the second epoch while the first batches are
        // merged.
        grid.trial("iterator: next", 9, slow, at);
        grid.trial("iterator: reset", 1, slow, at);
        grid.trial("model: step", 9, slow, at);
        grid.trial("strategy: land", 3, slow, at);
      }
  }
}

TEST_CASE("an evaluation fails, by itself and in a listener during a training") {
  Table table;
  const std::vector<std::pair<std::string, std::string>> places = {
      {"iterator: reset", "the data iterator failed in reset to epoch 1: boom"},
      {"iterator: next", "the data iterator failed at batch"},
      {"model: replicate", "on cpu could not be made: boom"},
      {"model: output", "on cpu failed in batch"}};
  // Counts the fault if it strikes, and checks the text of its error.
  const auto strikes = [&](Faults& faults, const std::string& kind, const std::string& where, auto call) {
    std::string text;
    try {
      call();
    } catch (const TrainingError& error) {
      text = error.what();
    }
    CHECK(text.empty() != faults.struck());
    if (!faults.struck()) return false;
    table.add(kind + " throws", Clock::now() - faults.left());
    CHECK_MESSAGE(contains(text, where), text);
    CHECK_MESSAGE(contains(text, "a listener failed after iteration") == contains(kind, "listener"), text);
    CHECK_MESSAGE(text.ends_with(": boom"), text);
    return true;
  };
  for (const bool trainedBefore : {false, true})
    for (const auto& [place, where] : places)
      for (const long at : {0, 1, 3, 6}) {
        INFO("trainedBefore ", trainedBefore, ", place ", place, ", at ", at);
        const ThreadsJoined joined;
        Faults faults;
        ToyModel model(toy());
        model.state();
        auto own = examples();
        FaultyIterator data(faults, own);
        auto wrapper = toyWrapper(model, kWorkers, 2).averageUpdaters(false).build();
        if (trainedBefore) wrapper.fit(data);
        const auto bits = model.allBits();
        const Evaluation expected = evaluate(model, data);
        addFaults(model.control(), faults);
        faults.clear();
        faults.failAt(place, at);
        strikes(faults, "evaluate(): " + place, where, [&] {
          const auto result = wrapper.evaluate(data);
          CHECK(result == expected);
        });
        faults.clear();
        CHECK(model.allBits() == bits);
        CHECK(wrapper.evaluate(data) == expected);
      }

  for (const auto& rule : rules())
    for (const auto& [place, where] : places)
      for (const long at : {0, 5, 20}) {
        if (rule.listens || place == "model: replicate") continue;
        CAPTURE(rule.text());
        CAPTURE(place);
        CAPTURE(at);
        const ThreadsJoined joined;
        Faults faults, none;
        ToyModel model(toy()), fresh(toy());
        model.state();
        fresh.state();
        addFaults(model.control(), faults);
        auto own = examples(), training = examples();
        FaultyIterator held(faults, own);
        auto wrapper =
            rule.builder(model, none)
                .listeners({onMerge([&](const MergeEvent& event) { event.trainer.evaluate(held); })})
                .build();
        faults.failAt(place, at);
        if (!strikes(faults, "evaluate() by a listener: " + place, where, [&] { wrapper.fit(training); }))
          continue;
        const auto train = [&] {
          faults.clear();
          model.copyStateFrom(fresh);
          wrapper.fit(training);
          return model.allBits();
        };
        const auto bits = train();
        CHECK(train() == bits);
      }
}
