// A training that ends at any merge and is resumed from a checkpoint's content, against an uninterrupted one.

#include <type_traits>

#include "muster/parallel/strategies/named_strategy.h"
#include "tests/parallel/builder_of.h"
#include "tests/parallel/resumable.h"
#include "tests/support/log_lines.h"
#include "tests/support/recording_listener.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

using namespace muster;
using namespace muster::test;

namespace {

constexpr std::int64_t kResumedWidth = 40, kResumedEpochs = 3;
constexpr int kBatches = 13;

ToyModel modelOf(const ResumableRule& rule) {
  return ToyModel({.size = kResumedWidth,
                   .training = {.updater = rule.updater, .l2 = 0.01},
                   .statistics = true,
                   .split = true});
}

ToyIterator dataOf() {
  return ToyIterator(randomBatches(7, kBatches, 5, kResumedWidth, /*ragged=*/true), kResumedWidth);
}

ParallelWrapper wrapperOf(ToyModel& model, const ResumableRule& rule, int workers, std::int64_t prefetch = 16,
                          Listeners listeners = {}) {
  return builderOf(model, workers, rule.options)
      .prefetchBuffer(prefetch)
      .listeners(std::move(listeners))
      .build();
}

/// A training that is resumed from a checkpoint's content, or a new one.
struct Run {
  explicit Run(const ResumableRule& of, const Held* from = nullptr) : rule(of), model(modelOf(of)) {
    if (from) from->giveTo(model);
  }
  /// Trains up to the last epoch. @return everything that a file would hold, and the score.
  Held train(int workers, std::vector<Held>* atMerges = nullptr, std::int64_t prefetch = 16) {
    const auto holder = std::make_shared<Holder>(atMerges);
    wrapperOf(model, rule, workers, prefetch, {holder}).fit(data, kResumedEpochs - model.epoch());
    return holder->atEnd();
  }
  /// Trains an epoch, or the rest of one.
  void fit(int workers) { wrapperOf(model, rule, workers).fit(data); }

  const ResumableRule rule;
  ToyModel model;
  ToyIterator data = dataOf();
};

Held train(const ResumableRule& rule, int workers, std::vector<Held>* atMerges = nullptr) {
  return Run(rule).train(workers, atMerges);
}

std::vector<Held> mergesOf(const ResumableRule& rule, int workers) {
  std::vector<Held> atMerges;
  train(rule, workers, &atMerges);
  return atMerges;
}

Held resume(const ResumableRule& rule, int workers, const Held& held, std::int64_t prefetch,
            std::vector<Held>* atMerges = nullptr) {
  return Run(rule, &held).train(workers, atMerges, prefetch);
}

/// Sets a number in the block of this name, in the strategy's state, in flight or of the training.
void damage(ToyModel& model, std::string_view block, std::size_t at, double value, std::int64_t whole = 0) {
  bool found = false;
  for (auto* const all : {&model.strategyState(), &model.trainingState()})
    for (const auto& [name, values] : *all) {
      if (name != block) continue;
      found = true;
      if (values.dtype() == DType::Float64)
        values.data<double>()[at] = value;
      else if (values.dtype() == DType::Int64)
        values.data<std::int64_t>()[at] = whole;
      else
        values.data<float>()[at] = static_cast<float>(value);
    }
  REQUIRE(found);
}

void forgetTraining(ToyModel& model) {
  model.strategyState().clear();
  model.trainingState().clear();
}

}  // namespace

TEST_CASE("resumed at any merge, with any rule, the training ends with the bits of one that never ended") {
  auto rules = ofEachKind(resumableRules());
  rules.push_back({{"AdaComm", strategyNamed("averaging", "every=4,period=adacomm,period.interval=2", 4)}});
  for (const auto& rule : rules)
    for (const int least : {1, 2, 3}) {
      const int workers = rule.workers(least);
      INFO("name ", rule.name, ", workers ", workers);
      std::vector<Held> atMerges;
      const Held whole = train(rule, workers, &atMerges);
      REQUIRE(atMerges.size() >= 3 * kResumedEpochs / 2);
      for (std::size_t m = 0; m + 1 < atMerges.size(); ++m) {  // after the last merge, no training is left
        CAPTURE(m);
        const Held resumed = resume(rule, workers, atMerges[m], static_cast<std::int64_t>(m % 4));
        CHECK(whole.difference(resumed) == "");
      }
    }
}

TEST_CASE("one fit an epoch is resumed to the same bits, also where no batch is left in the epoch") {
  // The last merge of an epoch is not known to be the last: the data do not tell their size.
  const auto data = [] { return ToyIterator(randomBatches(7, 12, 5, kResumedWidth), kResumedWidth); };
  const auto trainRest = [&](const ResumableRule& rule, ToyModel& model, std::vector<Held>* atMerges) {
    auto batches = data();
    auto listener = std::make_shared<Holder>(atMerges);
    auto wrapper = wrapperOf(model, rule, rule.workers(2), 16, {listener});
    while (model.epoch() < kResumedEpochs) wrapper.fit(batches, 1);
    return listener->atEnd();
  };
  int emptyRests = 0;
  for (const auto& rule : ofEachKind(resumableRules())) {
    CAPTURE(rule.name);
    std::vector<Held> atMerges;
    auto model = modelOf(rule);
    const Held whole = trainRest(rule, model, &atMerges);
    for (std::size_t m = 0; m + 1 < atMerges.size(); ++m) {
      CAPTURE(m);
      const auto position = positionIn(atMerges[m].training);
      REQUIRE(position);
      if (position->nextBatch == 0)
        continue;  // the end of an epoch continues the fit, instead of another one
      if (position->nextBatch == 12) ++emptyRests;
      auto resumed = modelOf(rule);
      atMerges[m].giveTo(resumed);
      CHECK(whole.difference(trainRest(rule, resumed, nullptr)) == "");
    }
  }
  CHECK(emptyRests > 0);
}

TEST_CASE("workers of different speeds are resumed at any arrival, with unmerged steps and order") {
  for (const std::string options :
       {"every=2,rate=0.9",
        "every=3,period.until=2,rate=0.7,momentum=0.5,nesterov=true,staleness=1,grace=0.7,codec=int8",
        "every=4,rate=0.5,momentum=0.8,arrivalsPerStep=2,fewerIterationsIfSlow=true,staleness=0,"
        "updaterState=reset"}) {
    CAPTURE(options);
    const bool wait = options.starts_with("every=4"), momentum = options.starts_with("every=3");
    ResumableRule rule{{options, strategyNamed("asynchronous", "speeds=1,0.4,1.7," + options, 3)}};
    if (!momentum) rule.updater = Adam{.learningRate = 0.05};
    std::vector<Held> atMerges;
    const Held whole = train(rule, 3, &atMerges);
    bool unmerged = false;
    for (std::size_t m = 0; m + 1 < atMerges.size(); ++m) {
      CAPTURE(m);
      REQUIRE_FALSE(atMerges[m].training.empty());
      if (const Tensor* const left = findValues(atMerges[m].training, "unmerged"))
        for (const double number : left->span<double>()) unmerged = unmerged || number != 0;
      // Resume from the checkpoint, then from the resumed training's next checkpoint.
      std::vector<Held> again;
      CHECK(whole.difference(resume(rule, 3, atMerges[m], 3, &again)) == "");
      REQUIRE(again.size() + m + 1 == atMerges.size());
      CHECK(atMerges[m + 1].difference(again.front()) == "");
    }
    CHECK(unmerged == !wait);  // with staleness 0 workers always wait for each other
  }
}

TEST_CASE("a checkpoint holds what is in flight and the blocks that replicas do not share, and no others") {
  const auto has = [](const Held& held, std::string_view name) {
    return findValues(held.training, name) != nullptr;
  };
  const ResumableRule late{{"late", OverlappedAveraging{.frequency = 3, .delay = 2}}};
  std::vector<Held> atMerges;
  const Held end = train(late, 2, &atMerges);
  std::ptrdiff_t inFlight = 0;
  for (const Held& held : atMerges) {
    CHECK(has(held, "in flight.mean") == has(held, "in flight.sent"));
    inFlight += has(held, "in flight.mean") ? 1 : 0;
    CHECK(held.strategy.empty());
  }
  CHECK(inFlight > 0);
  CHECK(inFlight < std::ssize(atMerges));
  CHECK_FALSE(has(end, "in flight.mean"));

  const auto all = resumableRules();
  const auto averaged = mergesOf(all[0], 2).at(3), kept = mergesOf(all[1], 2).at(3),
             differing = mergesOf(all.back(), 2).at(3);
  CHECK_FALSE(has(averaged, "replicas.parameters"));
  CHECK_FALSE(has(averaged, "replicas.velocity"));
  CHECK(has(kept, "replicas.velocity"));
  CHECK_FALSE(has(kept, "replicas.parameters"));
  CHECK(has(differing, "replicas.parameters"));
  CHECK(has(differing, "merged.parameters"));  // the user's model is a moving average
}

TEST_CASE("after a stop between arrivals each batch is trained once, before the stop or after it") {
  for (const auto clock : {ArrivalClock::Virtual, ArrivalClock::Wall})
    for (int trial = 0; trial < 12; ++trial) {
      CAPTURE(trial);
      AsynchronousOuter options{.frequency = 2, .rate = 0.9, .clock = clock, .staleness = 1};
      if (clock == ArrivalClock::Virtual) options.speeds = {1, 0.4, 2};
      const ResumableRule rule{{"asynchronous", options}};
      auto control = std::make_shared<ToyControl>();
      const ToyOptions toy{.size = kResumedWidth, .training = {.updater = rule.updater}, .statistics = true};
      Held held;
      for (int run = 0; run < 3; ++run) {  // the first two runs are stopped
        ToyModel model(toy, control);
        if (run > 0) held.giveTo(model);
        auto data = dataOf();
        const auto holder = std::make_shared<Holder>();
        Listeners listeners{holder};
        if (trial % 2 == 0) listeners.push_back(workerListener());
        auto wrapper = wrapperOf(model, rule, 3, trial % 5, listeners);
        control->onStep = [&](const Batch& batch) {
          if (batch.stamp.sequence == 3 + trial % 4 + 4 * run && run < 2) wrapper.stopFit();
        };
        wrapper.fit(data);
        held = holder->atEnd();
        CHECK(model.epoch() == (run < 2 ? 0 : 1));
      }
      std::int64_t next = 0;
      for (const auto& step : control->steps()) CHECK(step.stamp.sequence == next++);
      CHECK(next == kBatches);
    }
}

TEST_CASE("checkpoints change no bit, and land no merge early") {
  for (const auto& rule : ofEachKind(resumableRules())) {
    CAPTURE(rule.name);
    const int workers = rule.workers(2);
    std::vector<Held> atMerges;  // reads the model and the training state at each merge
    const Held watched = train(rule, workers, &atMerges);
    Held end = train(rule, workers);
    CHECK(watched.difference(end) == "");
    Run alone(rule);
    wrapperOf(alone.model, rule, workers).fit(alone.data, kResumedEpochs);
    end.training.clear();
    CHECK(end.difference(Held(alone.model, {})) == "");
  }
}

TEST_CASE("model.fit() is resumed within an epoch, as is a wrapper with one worker") {
  const ResumableRule rule{{"averaging", Averaging{}}, Adam{.learningRate = 0.05}};
  const auto fit = [&](const Held* from, std::vector<Held>* atMerges) {
    auto model = modelOf(rule);
    if (from) from->giveTo(model);
    auto data = dataOf();
    auto holder = std::make_shared<Holder>(atMerges);
    model.setListeners({holder});
    model.fit(data, kResumedEpochs - model.epoch());
    return holder->atEnd();
  };
  std::vector<Held> atMerges;
  const Held whole = fit(nullptr, &atMerges);
  REQUIRE(atMerges.size() == kResumedEpochs * kBatches);
  for (std::size_t m = 0; m + 1 < atMerges.size(); m += 3) {
    CAPTURE(m);
    CHECK(whole.difference(fit(&atMerges[m], nullptr)) == "");
    Held byWorker = resume(rule, 1, atMerges[m], 3);
    byWorker.training = whole.training;  // a wrapper's training state has more fields,
    byWorker.score = whole.score;        // and its score is a mean, with possibly one more rounding
    CHECK(whole.difference(byWorker) == "");
  }
}

TEST_CASE("fit(data, epochs) first finishes the interrupted epoch, which counts as one of them") {
  const ResumableRule rule = resumableRules().front();
  const auto atMerges = mergesOf(rule, 2);
  Run run(rule, &atMerges[2]);  // 6 of 13 batches
  auto recorded = mergedListener();
  auto wrapper = wrapperOf(run.model, rule, 2, 16, {recorded});
  wrapper.fit(run.data, 1);
  CHECK(run.model.epoch() == 1);
  CHECK(run.model.iteration() == 7);
  CHECK(run.model.trainingState().empty());
  const auto merges = recorded->calls("merge");
  REQUIRE(merges.size() == 4);
  CHECK(merges.front().batch == 8);
  CHECK(merges.back().batch == 13);
  wrapper.fit(run.data, 1);  // a whole epoch
  CHECK(run.model.iteration() == 14);
}

TEST_CASE("with another number of workers the log says how many trained batches are lost") {
  const ResumableRule rule{{"free", AsynchronousOuter{.frequency = 2, .rate = 0.9}}, Sgd{}};
  LogLines log;
  std::size_t losses = 0;
  for (const Held& held : mergesOf(rule, 3)) {
    double lost = 0;
    if (const Tensor* const unmerged = findValues(held.training, "unmerged"))
      for (std::size_t w = 0; w < 3; ++w) lost += unmerged->span<double>()[6 * w + 3];
    log.forget();
    Run(rule, &held).fit(2);
    const auto lines = log.all();
    REQUIRE_FALSE(lines.empty());
    CHECK_CONTAINS(lines.front(), "has 3 workers, this training has 2");
    const auto text = lost == 1 ? std::string("; 1 batch that was trained and not merged is lost")
                                : fmt::format("; {} batches that were trained and not merged are lost", lost);
    CHECK(lines.front().ends_with(lost > 0 ? text : "other state of their own is reset"));
    losses += lost > 0 ? 1 : 0;
  }
  CHECK(losses > 0);
}

TEST_CASE("each batch is trained once, also if a stop ended workers apart or their number changes") {
  const ResumableRule rule{{"averaging", Averaging{.frequency = 100}}};
  for (const int workers : {1, 2, 3, 5}) {
    CAPTURE(workers);
    auto control = std::make_shared<ToyControl>();
    const ToyOptions options{
        .size = kResumedWidth, .training = {.updater = rule.updater}, .statistics = true};
    Held held;
    {
      ToyModel model(options, control);
      auto data = dataOf();
      auto holder = std::make_shared<Holder>();
      auto wrapper = wrapperOf(model, rule, 2, 16, {holder});
      // Worker 0 stops the training in batch 8, when worker 1 is still at its batch 5.
      Gate gate;
      control->onStep = [&](const Batch& batch) {
        if (batch.stamp.sequence == 5) gate.pass();
        if (batch.stamp.sequence != 8) return;
        gate.awaitVisitor();
        wrapper.stopFit();
        gate.open();
      };
      wrapper.fit(data);
      held = holder->atEnd();
    }
    control->onStep = {};
    CHECK(numbersIn<std::int64_t>(held.training, "position", 4)[0] == 7);
    ToyModel model(options, control);
    held.giveTo(model);
    auto data = dataOf();
    auto wrapper = wrapperOf(model, rule, workers);
    wrapper.fit(data);
    std::int64_t next = 0, examples = 0;
    const auto sizes = randomBatches(7, kBatches, 5, kResumedWidth, true);
    for (const auto& step : control->steps()) {
      CHECK(step.stamp.sequence == next);
      CHECK(step.stamp.firstExample == examples);
      examples +=
          static_cast<std::int64_t>(sizes[static_cast<std::size_t>(next++)].values.size()) / kResumedWidth;
    }
    CHECK(next == kBatches);
    CHECK(model.epoch() == 1);
  }
}

TEST_CASE("with other workers or another rule, all start from the merged copy, which is logged") {
  LogLines log;
  const ResumableRule rule = resumableRules().back();
  const auto atMerges = mergesOf(rule, 2);
  const Held& held = atMerges[1];
  const Tensor* const merged = findValues(held.training, "merged.parameters");
  REQUIRE(merged != nullptr);
  Run run(rule, &held);
  run.fit(3);
  CHECK(run.model.epoch() == held.state.back().values.data<std::int64_t>()[1] + 1);
  const auto first = run.model.control().steps().front();
  CHECK(first.before == std::vector<float>(merged->data<float>(), merged->data<float>() + kResumedWidth));
  CHECK(log.all().front() ==
        "the checkpoint has 2 workers, this training has 3: each starts from the merged model, with the mean "
        "of updater states and residuals that workers kept; other state of their own is reset; merges that "
        "were launched and have not landed are lost");
  Run({resumableRules().front(), rule.updater}, &held).fit(2);
  CHECK(log.all().back() ==
        "the checkpoint is of a training with a rule with fragments in flight, this one has averaging every "
        "iteration: each worker starts from the merged model");

  log.forget();
  const OuterAveraging outer{.frequency = 2, .momentum = 0.5};
  const auto ofOuter = mergesOf({{"", outer}}, 2);
  auto measuring = outer, following = outer;
  measuring.measureStep = following.followLearningRate = true;
  Run({{"", measuring}}, &ofOuter[1]).fit(2);  // measuring is no other rule
  CHECK(log.all().empty());
  Run({{"", following}}, &ofOuter[1]).fit(2);
  const auto line = log.lineWith({"momentum 0.5) (every=2,period=fixed", "followLearningRate=true"});
  CHECK(line.find("followLearningRate=false") < line.find("this one has every=2"));
}

TEST_CASE("a checkpoint is not resumed if the model was changed, or within an epoch of other data") {
  const ResumableRule rule = resumableRules().front();
  const auto atMerges = mergesOf(rule, 2);
  const LogLines log;
  Run changed(rule, &atMerges[2]), elsewhere(rule, &atMerges[2]), same(rule, &atMerges[2]);
  changed.model.setParameters(std::vector<float>(kResumedWidth, 1));
  elsewhere.data.knownExamples = 1000;
  for (Run* const run : {&changed, &elsewhere}) {
    run->fit(2);
    CHECK(run->model.iteration() == 3 + 7);  // a whole epoch
  }
  const auto lines = log.all();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].starts_with("the model's checkpoint is not resumed: the model was changed since; "));
  CHECK(
      lines[1].starts_with("the model's checkpoint is not resumed: it is of the middle of an epoch of "
                           "another data set; "));
  // Data of the same size with different batches.
  same.data = ToyIterator(randomBatches(8, kBatches, 5, kResumedWidth, true), kResumedWidth);
  CHECK_CONTAINS(thrown<TrainingError>([&] { same.fit(2); }), "these are other data");
}

TEST_CASE("after a failure before the first merge, or a stop, the checkpoint can be resumed again") {
  const ResumableRule rule = resumableRules()[1];
  std::vector<Held> atMerges;
  const Held whole = train(rule, 2, &atMerges);
  Run run(rule, &atMerges[1]);
  auto holder = std::make_shared<Holder>();
  auto wrapper = wrapperOf(run.model, rule, 2, 16, {holder});
  run.model.control().onStep = [](const Batch&) { throw std::runtime_error("no step"); };
  CHECK_THROWS_AS(wrapper.fit(run.data, kResumedEpochs), TrainingError);
  run.model.control().onStep = {};
  std::stop_source stop;
  stop.request_stop();
  wrapper.fit(run.data, kResumedEpochs, stop.get_token());
  CHECK(holder->atEnd().difference(atMerges[1]) == "");
  wrapper.fit(run.data, kResumedEpochs - run.model.epoch());
  CHECK(whole.difference(holder->atEnd()) == "");
}

namespace {

/// Records each call of next(), and of skip() if `Seeks`, which then moves without reading.
template <bool Seeks>
struct Recorded final : ToyIterator {
  Recorded() : ToyIterator(randomBatches(7, kBatches, 5, kResumedWidth, /*ragged=*/true), kResumedWidth) {
    onNext = [this](std::int64_t epoch, std::int64_t batch) { reads.emplace_back(epoch, batch); };
  }
  std::int64_t skip(std::int64_t batches) override {
    skips.push_back(batches);
    return Seeks ? moveOn(batches) : ToyIterator::skip(batches);
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> reads;  // {epoch, batch}, in order
  std::vector<std::int64_t> skips;                           // [call] batches
};

}  // namespace

TEST_CASE_TEMPLATE("a user-defined iterator is asked to skip, and may do it without reading", Data,
                   Recorded<false>, Recorded<true>) {
  constexpr bool kSeeks = std::is_same_v<Data, Recorded<true>>;
  const ResumableRule rule = resumableRules().front();
  std::vector<Held> atMerges;
  const Held whole = train(rule, 2, &atMerges);
  constexpr std::int64_t kTrained = 6;  // of two workers at their third merge
  for (const std::int64_t prefetch : {0, 16}) {
    CAPTURE(prefetch);
    auto model = modelOf(rule);
    atMerges[kTrained / 2 - 1].giveTo(model);
    Data data;
    auto holder = std::make_shared<Holder>();
    wrapperOf(model, rule, 2, prefetch, {holder}).fit(data, kResumedEpochs);
    CHECK(whole.difference(holder->atEnd()) == "");
    CHECK(data.skips == std::vector{kTrained});
    std::vector<std::pair<std::int64_t, std::int64_t>> reads;
    for (std::int64_t epoch = 0; epoch < kResumedEpochs; ++epoch)
      for (std::int64_t batch = epoch == 0 && kSeeks ? kTrained : 0; batch <= kBatches; ++batch)
        reads.emplace_back(epoch, batch);  // the last call of an epoch finds its end
    CHECK(data.reads == reads);
  }
}

TEST_CASE("impossible numbers in a training state are refused") {
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t k62 = std::int64_t{1} << 62, k59 = std::int64_t{1} << 59;
  const ResumableRule averaging = resumableRules().front(),
                      arrivals{{"arrivals", AsynchronousOuter{.frequency = 2}}};
  const struct {
    const ResumableRule& rule;
    const char* name;
    std::size_t at;
    std::int64_t value;
    const char* problem;  // its beginning
  } rows[] = {
      {averaging, "position", 0, -1, "\"position\" has -1 trained batches, which is impossible"},
      {averaging, "position", 0, k62,
       "\"position\" has 4611686018427387904 trained batches, which is impossible"},
      {averaging, "rounds", 0, -5, "\"rounds\" has -5 finished rounds, which is impossible"},
      {averaging, "position", 1, kLast,
       "\"position\" has 9223372036854775807 trained examples, which is impossible"},
      {averaging, "scores", 1, -1, "\"scores\" has a sum "},
      {averaging, "rounds", 0, kLast,
       "\"rounds\" has 9223372036854775807 finished rounds, which is impossible"},
      {averaging, "examples", 1, kLast, "\"examples\" has numbers that workers cannot have trained"},
      {averaging, "weights", 2, kLast, "\"weights\" must be finite and not negative"},
      {averaging, "rounds", 1, 0, "the strategy's plan: a round must have at least 1 iteration, got 0"},
      // More landings than trained batches: repeating their order would take for ever.
      {arrivals, "rounds", 5, k59, "\"rounds\" has 576460752303423488 landings in an epoch with "},
      // More examples not merged than trained.
      {arrivals, "unmerged", 4, 1 << 20, "\"unmerged\" has negative numbers where none may be negative"}};
  for (const auto& [rule, name, at, value, begin] : rows) {
    const auto atMerges = mergesOf(rule, 2);
    Run run(rule, &atMerges[2]);
    damage(run.model, name, at, static_cast<double>(value), value);
    const auto problem = thrown<InvalidArgument>([&] { run.fit(2); });
    CHECK_MESSAGE(problem.starts_with(std::string("training state: ") + begin), problem);
  }
}

TEST_CASE("impossible numbers in a strategy's state are refused, and the wrapper can train without them") {
  const AnyStrategy gossip = Gossip{.frequency = 2},
                    streaming = StreamingOuter{.frequency = 3, .fragments = 1}, shared = SharedGradients{},
                    groups = HierarchicalAveraging{.levels = {{.period = 1, .group = 2}, {.period = 3}}},
                    adaComm = Averaging{.frequency = Period::adaComm(3, {.interval = 2})},
                    outer = OuterAveraging{.frequency = 2, .momentum = 0.5},
                    arrivals = AsynchronousOuter{.frequency = 2, .rate = 0.9};
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  struct Case {
    const AnyStrategy& rule;
    std::string block;
    std::size_t at;
    double value;
    std::string problem;
  };
  const std::vector<Case> cases{
      {gossip, "gossip rounds", 0, nan, "element 0 of \"gossip rounds\" is nan"},
      {gossip, "gossip rounds", 0, -1, "\"gossip rounds\" has -1 as a count"},
      {gossip, "gossip rounds", 1, 0.5, "\"gossip rounds\" has 0.5 as a count"},
      {gossip, "gossip rounds", 3, 1e30, "\"gossip rounds\" has 1e+30 as a count"},
      {streaming, "turn", 0, -2, "\"turn\" has -2 as a count"},
      {streaming, "turn", 0, 64, "\"turn\" has 64 as the last fragment"},
      {shared, "sender", 0, nan, "element 0 of \"sender\" is nan"},
      {shared, "sender", 0, -1, "\"sender\" has -1 as a threshold"},
      {shared, "sender", 5, 1e31, "\"sender\" has 1e+31 as a threshold"},
      {shared, "sender", 1, -1, "\"sender\" has -1 messages"},
      {shared, "sender", 4, -1, "\"sender\" has -1 as a weight"},
      {groups, "trained since merges", 1, -1, "\"trained since merges\" has -1 as a weight"},
      {groups, "trained since merges", 2, -3, "\"trained since merges\" has -3 iterations"},
      {adaComm, "AdaComm", 0, -1, "\"AdaComm\" has -1 as the period"},
      {adaComm, "AdaComm", 2, -1, "\"AdaComm\" has -1 as the first learning rate"},
      {adaComm, "AdaComm", 4, -1, "\"AdaComm\" has -1 rounds"},
      {outer, "outer momentum", 5, infinity, "element 5 of \"outer momentum\" is inf"},
      {arrivals, "updates of each worker", 1, -7, "\"updates of each worker\" has -7 as a count"},
      {arrivals, "in flight.last landing", 0, -1, "\"last landing\" has -1 as a count"}};
  for (const auto& [options, block, at, value, what] : cases) {
    CAPTURE(what);
    const ResumableRule rule{{"", options}};
    const auto atMerges = mergesOf(rule, 2);
    Run run(rule), again(rule, &atMerges[1]);
    auto wrapper = wrapperOf(run.model, rule, 2);
    wrapper.fit(run.data);
    forgetTraining(run.model);
    atMerges[1].giveTo(run.model);
    damage(run.model, block, at, value);
    const auto problem = "strategy state: " + what + ", which is impossible";
    CHECK_REFUSED(wrapper.fit(run.data), problem);
    run.model.setLoadedFrom("run/checkpoint-epoch-0001.safetensors");
    CHECK(thrown<FileError>([&] { wrapper.fit(run.data); }) ==
          "run/checkpoint-epoch-0001.safetensors: cannot be resumed: " + problem);

    forgetTraining(again.model);
    forgetTraining(run.model);
    wrapper.fit(run.data);
    again.fit(2);
    CHECK(run.model.allBits() == again.model.allBits());
  }
}

TEST_CASE("hierarchical averaging resumes after a number of iterations that no period divides") {
  const ResumableRule rule{
      {"groups", HierarchicalAveraging{.levels = {{.period = 2, .group = 2}, {.period = 4}}}}};
  const auto atMerges = mergesOf(rule, 2);
  Run run(rule, &atMerges[0]);                      // after 2 of 7 iterations
  damage(run.model, "trained since merges", 2, 5);  // the next round ends after 7
  run.fit(2);
  CHECK(run.model.iteration() == 7);
  CHECK(run.model.epoch() == 1);
  CHECK(std::isfinite(run.model.score()));
}
