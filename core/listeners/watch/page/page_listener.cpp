#include "muster/core/listeners/watch/page/page_listener.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "muster/core/base/error.h"
#include "muster/core/base/is_divergence.h"
#include "muster/core/base/log.h"
#include "muster/core/base/mutex.h"
#include "muster/core/io/detail/network_parts.h"
#include "muster/core/io/json_value.h"
#include "muster/core/io/network_json.h"
#include "muster/core/listeners/watch/layer_histograms.h"
#include "muster/core/listeners/watch/machine_text.h"
#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_inbox.h"
#include "muster/core/listeners/watch/page/still_page.h"
#include "muster/core/listeners/watch/round_forecast.h"
#include "muster/core/listeners/watch/training_readings.h"
#include "muster/core/nn/network.h"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostWorkers = 64;
constexpr auto kHistogramsEvery = std::chrono::seconds(1);
constexpr std::int64_t kSmallModel = 4096;  // parameters; a small model gets histograms from round one
constexpr int kHistogramsShare = 2000;      // histograms wait for this multiple of the time they take
constexpr int kLastHistogramsShare = 20;    // those of a fit's last round, for the time since it began

constexpr auto kTimesEvery = std::chrono::seconds(1);
// A checkpoint of an epoch's end often follows it, and a training that resumes it needs the file's curves.
constexpr auto kKeptEveryAtEpochs = std::chrono::milliseconds(50);

bool isSmall(Model& model) {
  for (const auto& block : model.blocks())
    if (block.values.defined() && block.values.elements() > kSmallModel) return false;
  return true;
}

std::string valueText(const HyperParameter& parameter) {
  if (const auto* number = std::get_if<double>(&parameter.value)) return fmt::format("{}", *number);
  if (const auto* truth = std::get_if<bool>(&parameter.value)) return *truth ? "true" : "false";
  return std::get<std::string>(parameter.value);
}

/// An axis at an iteration; 0 if the file has no such number.
double placeAt(const PageCurve& axis, std::int64_t iteration) {
  const double place = axis.at(iteration);
  return place >= 0 && place < 1e9 ? place : 0;  // false for NaN
}

std::int64_t countAt(const PageCurve& axis, std::int64_t iteration) {
  const double place = axis.at(iteration);
  return place >= 0 && place < 1e18 ? std::llround(place) : 0;
}

/// Whether a network in JSON has the model's layers and input shapes. Updater, seed and so on may differ.
bool isOfModel(const std::string& saved, const Model& model) {
  const auto* const network = dynamic_cast<const Network*>(&model);
  if (network == nullptr || saved.empty()) return network == nullptr && saved.empty();
  if (saved == printJsonLine(parseJson(network->toJson()))) return true;
  try {
    const auto was = detail::partsOf(*networkFromJson(saved)), is = detail::partsOf(*network);
    return was.inputs == is.inputs && was.parts == is.parts;
  } catch (const InvalidArgument&) {
    return false;
  }
}

/// The curves that the file had before, if they are of the training that the model resumes; else none, a
/// warning, and the old file keeps its curves under another name.
std::vector<std::pair<std::string, PageCurve>> earlierCurves(CurvesFile& file, Model& model) {
  const auto path = file.path().string();
  try {
    auto saved = file.read();
    if (!saved.empty()) {
      require(isOfModel(saved.network, model), "{}: is of another network", path);
      return std::move(saved.curves);
    }
    logWarning("curves of the resumed training: {}: was missing; they begin at iteration {}", path,
               model.iteration());
  } catch (const Error& error) {
    if (const auto old = file.setAside(); !old.empty())
      logWarning(
          "curves of the resumed training: {}; they begin at iteration {}, and the old file is kept as {}",
          error.what(), model.iteration(), old.string());
  }
  return {};
}

/// The page of a running training. Its content comes from the inbox: the server's thread takes it or, without
/// a server, the listener once per second.
class LivePage final : public PageSource {
 public:
  explicit LivePage(std::shared_ptr<PageInbox> inbox) : inbox_(std::move(inbox)) {}

  void update() override {
    const Lock lock(mutex_);
    inbox_->take(content_);
    store_.add(content_);
  }
  std::unique_ptr<PageReader> reader() override { return std::make_unique<Reader>(*this); }
  void begin() {
    const Lock lock(mutex_);
    store_.begins();
  }
  void putBefore(std::string_view name, PageCurve curve) {
    const Lock lock(mutex_);
    store_.putBefore(name, std::move(curve));
  }
  void fail(std::string why) {
    const Lock lock(mutex_);
    store_.failed(std::move(why));
  }
  /// Calls read(store) with the lock held.
  template <typename Read>
  auto with(Read read) {
    const Lock lock(mutex_);
    return read(store_);
  }

 private:
  struct Reader final : PageReader {
    explicit Reader(LivePage& from) : page(from) {}
    std::string news() override {
      return page.with([&](const PageStore& store) { return store.news(seen); });
    }
    LivePage& page;
    PageStore::Seen seen;
  };

  std::shared_ptr<PageInbox> inbox_;
  Mutex mutex_;
  PageStore store_ MUSTER_GUARDED_BY(mutex_);
  PageInbox::Content content_ MUSTER_GUARDED_BY(mutex_);
};

}  // namespace

/// Shared by the two listeners; workers may call at any time.
struct PageListener::State {
  explicit State(const PageOptions& options)
      : readEvery(options.readEvery),
        readings({.everyTime = kTimesEvery,
                  .scoresEvery = options.readEvery,
                  .places = true,
                  .evaluation = options.evaluation},
                 [this](std::string_view name, std::int64_t step, double value) {
                   inbox->point(name, step, value);
                 }) {
    if (!options.curves.empty()) file.emplace(options.curves, options.group);
    if (options.serve) server.emplace(options.port, page, options.limits);
    for (std::size_t worker = 0; worker < workerScores.size(); ++worker)
      workerScores[worker].name = fmt::format("score/worker {}", worker);
  }

  /// Shows the curves that an earlier process wrote to the file, up to the checkpoint that the training
  /// resumes; the rest of them is trained again.
  void resume(Model& model) MUSTER_REQUIRES(mutex) {
    const auto iteration = model.iteration();
    TrainingReadings::Places places;
    for (auto& [name, curve] : earlierCurves(*file, model)) {
      if (name == "at/samples") places.samples = countAt(curve, iteration);
      if (name == "at/bytes") places.bytes = countAt(curve, iteration);
      if (name == "at/seconds")
        places.trained = std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * placeAt(curve, iteration)));
      // The axes get a point at the checkpoint itself.
      curve.endAt(name.starts_with("at/") ? iteration - 1 : iteration);
      page->putBefore(name, std::move(curve));
    }
    readings.resume(iteration, places);
  }

  /// Takes the inbox's content, in case no server does, and updates the file once a training has begun.
  void keep(bool last = false) MUSTER_REQUIRES(mutex) {
    keptAt = Clock::now();
    page->update();
    if (!file || !begun) return;
    CurvesFile& curves = *file;  // clang's thread-safety analysis does not follow the lock into lambdas
    page->with([&](const PageStore& store) { curves.update(store, last); });
  }
  void keepIfDue(Clock::time_point now, Clock::duration every) MUSTER_REQUIRES(mutex) {
    if ((file || !server) && now - keptAt > every) keep();
  }

  /// Whether histograms of the next round are due; this depends on the time that earlier ones took.
  bool histogramsDue(Clock::time_point now, RoundForecast::Next next) const MUSTER_REQUIRES(mutex) {
    if (next.endsFit && now >= fitBegan + kLastHistogramsShare * histogramsTook) return true;
    const Clock::duration least = next.endsEpoch ? Clock::duration(0) : kHistogramsEvery;
    return now >= lastHistograms + std::max(least, kHistogramsShare * histogramsTook);
  }
  void lookAtLayers(Model& model, std::int64_t step, Clock::time_point began) MUSTER_REQUIRES(mutex) {
    const auto seen = layers.after(model);
    if (seen.empty()) return;
    for (const auto& layer : seen) {
      inbox->point("norm/" + layer.name, step, layer.parameters.norm());
      inbox->point("ratio/" + layer.name, step, layer.ratio());
    }
    inbox->histograms({step, {seen.begin(), seen.end()}});
    const auto now = Clock::now();
    histogramsTook += now - began;
    lastHistograms = now;
  }

  /// The mean score of a worker's steps since the last reading. Needs no lock: only the worker's thread uses
  /// it during a fit, and only the training thread between fits.
  struct alignas(64) WorkerScore {
    std::string name;
    double sum = 0;
    std::int64_t examples = 0;
    std::int64_t step = 0;  // the last one
    Clock::time_point readAt{};

    void read(PageInbox& shown) {
      shown.point(name, step, sum / static_cast<double>(examples));
      sum = 0;
      examples = 0;
    }
  };

  const std::chrono::nanoseconds readEvery;
  std::shared_ptr<PageInbox> inbox = std::make_shared<PageInbox>();
  std::array<WorkerScore, kMostWorkers> workerScores;  // [worker]
  Mutex mutex;
  TrainingReadings readings MUSTER_GUARDED_BY(mutex);
  LayerHistograms layers MUSTER_GUARDED_BY(mutex);
  RoundForecast forecast MUSTER_GUARDED_BY(mutex);
  Clock::time_point fitBegan MUSTER_GUARDED_BY(mutex) = {};
  PageProgress progress MUSTER_GUARDED_BY(mutex);
  Clock::time_point lastHistograms MUSTER_GUARDED_BY(mutex) = {};
  Clock::time_point lastProgress MUSTER_GUARDED_BY(mutex) = {};
  Clock::time_point keptAt MUSTER_GUARDED_BY(mutex) = {};
  Clock::duration histogramsTook MUSTER_GUARDED_BY(mutex) = {};
  std::shared_ptr<LivePage> page = std::make_shared<LivePage>(inbox);
  std::optional<CurvesFile> file MUSTER_GUARDED_BY(mutex);
  bool begun MUSTER_GUARDED_BY(mutex) = false;  // a fit has begun, so the file is of this training
  std::optional<PageServer> server;
};

/// The listener of worker scope.
class PageListener::Workers final : public Listener {
 public:
  explicit Workers(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ListenerScope scope() const override { return ListenerScope::Worker; }
  void onIteration(const IterationEvent& event) override {
    if (event.worker >= kMostWorkers) return;
    auto& score = state_->workerScores[static_cast<std::size_t>(event.worker)];
    score.sum += event.score * static_cast<double>(event.examples);
    score.examples += event.examples;
    score.step = event.stamp.iteration + 1;
    const auto now = Clock::now();
    if (now - score.readAt < state_->readEvery || score.examples == 0) return;
    score.read(*state_->inbox);
    score.readAt = now;
  }

 private:
  std::shared_ptr<State> state_;
};

PageListener::PageListener(PageOptions options) : state_(std::make_shared<State>(options)) {
  state_->inbox->text("machine", machineText());
  if (state_->server)
    for (const auto& line : state_->server->lines()) writeLine(options.sink, line);
}

PageListener::~PageListener() = default;

std::shared_ptr<Listener> PageListener::workers() {
  return std::make_shared<Workers>(state_);
}

void PageListener::text(std::string_view name, std::string_view text) {
  state_->inbox->text(name, text);
}

void PageListener::point(std::string_view name, std::int64_t iteration, double value) {
  state_->inbox->point(name, iteration, value);
}

void PageListener::hyperParameters(const std::vector<HyperParameter>& parameters) {
  std::string lines;
  for (const auto& parameter : parameters)
    lines += fmt::format("{}: {}\n", parameter.name, valueText(parameter));
  state_->inbox->text("options", lines);
}

void PageListener::failed(const std::exception_ptr& failure) {
  const Lock lock(state_->mutex);
  if (isDivergence(failure))
    state_->inbox->point("score/merged", state_->progress.iteration + 1, std::nan(""));
  state_->page->update();
  state_->page->fail(describe(failure));
  if (state_->file) state_->keep(/*last=*/true);
}

std::string PageListener::still(const std::string& document) {
  state_->page->update();
  std::vector<std::string> news{state_->page->with([](const PageStore& store) { return store.all(); })};
  if (!document.empty()) news.push_back(document);
  return stillPage(news);
}

std::string PageListener::address() const {
  require(state_->server.has_value(), "page: it is not served, so it has no address");
  return state_->server->address();
}

int PageListener::port() const {
  require(state_->server.has_value(), "page: it is not served, so it has no port");
  return state_->server->access().port;
}

void PageListener::onFitStart(const FitEvent& event) {
  const Lock lock(state_->mutex);
  auto& progress = state_->progress;
  progress = {.running = true,
              .workers = event.trainer.workers(),
              .epoch = event.firstEpoch,
              .lastEpoch = event.firstEpoch + event.epochs,
              .batchesPerEpoch = event.batchesPerEpoch,
              .began = std::chrono::system_clock::now()};
  state_->inbox->progress(progress);
  state_->page->begin();
  state_->readings.fitStart(event);
  state_->forecast.fitStart(event);
  for (auto& score : state_->workerScores) {
    score.sum = 0;
    score.examples = 0;
    score.readAt = {};
  }
  Model& model = event.trainer.model();
  if (const auto* const network = dynamic_cast<const Network*>(&model))
    state_->inbox->network(network->toJson());
  const bool first = !std::exchange(state_->begun, true);
  if (first && state_->file && model.iteration() > 0) state_->resume(model);
  state_->keep();
  if (isSmall(model)) state_->layers.before(model);
  state_->lastHistograms = state_->fitBegan = Clock::now();
}

void PageListener::onEpochStart(const EpochEvent&) {
  const Lock lock(state_->mutex);
  state_->readings.epochStart();
}

void PageListener::onMerge(const MergeEvent& event) {
  const Lock lock(state_->mutex);
  state_->readings.merge(event);
  const auto now = Clock::now();
  auto& progress = state_->progress;
  progress.iteration = event.iteration;
  progress.batches = event.batchesInEpoch;
  if (now - state_->lastProgress > std::chrono::milliseconds(100)) {
    state_->inbox->progress(progress);
    state_->lastProgress = now;
  }
  if (state_->layers.begun()) state_->lookAtLayers(event.trainer.model(), event.iteration, now);
  if (state_->histogramsDue(now, state_->forecast.after(event))) {
    const auto began = Clock::now();
    state_->layers.before(event.trainer.model());
    state_->histogramsTook = Clock::now() - began;
  }
  state_->keepIfDue(now, kTimesEvery);
}

void PageListener::onEpochEnd(const EpochEvent& event) {
  const Lock lock(state_->mutex);
  state_->readings.epochEnd(event);
  state_->progress.epoch = event.epoch + 1;
  state_->progress.iteration = event.iteration;
  state_->progress.batches = 0;
  state_->inbox->progress(state_->progress);
  state_->keepIfDue(Clock::now(), kKeptEveryAtEpochs);
}

void PageListener::onFitEnd(Trainer& trainer) {
  const Lock lock(state_->mutex);
  state_->readings.fitEnd(trainer);
  for (auto& score : state_->workerScores)
    if (score.examples > 0) score.read(*state_->inbox);
  state_->progress.running = false;
  state_->inbox->progress(state_->progress);
  if (state_->file) state_->keep(/*last=*/true);
}

}  // namespace muster
