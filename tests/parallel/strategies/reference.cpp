#include "tests/parallel/strategies/reference.h"

#include <cstdio>
#include <sstream>

#include "muster/parallel/parallel_wrapper.h"
#include "muster/parallel/strategies/named_strategy.h"
#include "muster/parallel/training/internals.h"
#include "tests/parallel/builder_of.h"
#include "tests/support/on_merge.h"
#include "tests/support/reference_model.h"
#include "tests/support/skip.h"
#include "tests/support/texts.h"

namespace muster::test {
namespace {

constexpr std::int64_t kBatches = 23, kEpochs = 2;

std::int64_t sizeOfBatch(std::int64_t b) {
  return 1 + (7 * b * b + 3 * b) % 5;
}

/// Like Quadratic in common.py. Features are [N, 2 P]: curvatures, then centres.
class QuadraticModel final : public Model {
 public:
  explicit QuadraticModel(TrainingOptions options, Context* context = nullptr)
      : Model(std::move(options), context) {
    auto table = std::make_shared<SegmentTable>();
    table->add({.name = "p", .shape = {45}});
    table->add({.name = "q", .shape = {25}});
    for (const auto kind : {BlockKind::Parameters, BlockKind::Gradients})
      blocks_.push_back(StateBlock::zeros(
          kind == BlockKind::Parameters ? "parameters" : "gradients", kind,
          kind == BlockKind::Parameters ? MergeRule::Average : MergeRule::Keep, table, DType::Float64));
    updater_ = std::make_unique<ReferenceUpdater>(trainingOptions(), blocks_[0]);
  }
  std::unique_ptr<Model> replicate(Context& context) const override {
    return std::make_unique<QuadraticModel>(trainingOptions(), &context);
  }
  StepTicket gradient(const Batch& batch) override {
    const Tensor& x = batch.features.front().value;
    const std::int64_t examples = batch.examples(), width = x.shape()[1] / 2;
    double loss = 0;
    std::int64_t j = 0;
    for (const Segment& segment : blocks_[0].segments->segments)
      for (std::int64_t i = segment.offset; i < segment.offset + segment.shape.elements(); ++i, ++j) {
        double sum = 0;
        for (std::int64_t n = 0; n < examples; ++n) {
          const double* row = x.data<double>() + n * 2 * width;
          const double difference = blocks_[0].values.data<double>()[i] - row[width + j];
          sum += row[j] * difference;
          loss += row[j] * difference * difference / 2;
        }
        blocks_[1].values.data<double>()[i] = sum / static_cast<double>(examples);
      }
    return StepTicket(
        {.score = loss / static_cast<double>(examples), .weight = static_cast<double>(examples)});
  }
  double update(const BatchStamp& stamp) override {
    return updater_->apply(blocks_[0], blocks_[1], stamp.iteration, stamp.epoch);
  }
  std::span<StateBlock> blocks() override { return blocks_; }
  std::span<StateBlock> updaterState() override { return updater_->state(); }

 private:
  std::vector<StateBlock> blocks_;  // parameters, gradients
  std::unique_ptr<ReferenceUpdater> updater_;
};

/// The batches of either problem. Example i is the same in every epoch.
class FormulaBatches final : public DataSetIterator {
 public:
  explicit FormulaBatches(bool quadratic) : quadratic_(quadratic) {}
  void reset(std::int64_t) override { next_ = first_ = 0; }
  bool next(Batch& batch) override {
    if (next_ == kBatches) return false;
    const std::int64_t n = sizeOfBatch(next_), width = quadratic_ ? 140 : 6;
    double* x = Batch::ensure(batch.features, "x", {n, width}, DType::Float64).data<double>();
    for (std::int64_t i = first_; i < first_ + n; ++i)
      for (std::int64_t j = 0; j < width; ++j)
        *x++ = quadratic_ ? (j < 70 ? curvature(j) : fraction(29 * i + 13 * (j - 70)))
                          : fraction(37 * i + 11 * j + i * j);
    if (!quadratic_) {
      std::int64_t* labels = Batch::ensure(batch.labels, "labels", {n}, DType::Int64).data<std::int64_t>();
      for (std::int64_t i = first_; i < first_ + n; ++i) *labels++ = (7 * i + i / 3) % 4;
    }
    ++next_;
    first_ += n;
    return true;
  }

 private:
  double curvature(std::int64_t j) const { return static_cast<double>(1 + (5 * next_ + 3 * j) % 7) / 4; }
  static double fraction(std::int64_t number) { return static_cast<double>(number % 64) / 32 - 1; }

  const bool quadratic_;
  std::int64_t next_ = 0, first_ = 0;  // index of the batch and of its first example
};

std::unique_ptr<Model> modelOf(bool quadratic, const TrainingOptions& training) {
  if (quadratic) return std::make_unique<QuadraticModel>(training);
  auto model = std::make_unique<ReferenceModel>(
      ReferenceOptions{.inputs = 6, .hidden = 5, .classes = 4, .training = training});
  const StateBlock& parameters = model->block(BlockKind::Parameters);
  std::int64_t k = 0;
  for (const Segment& segment : parameters.segments->segments)
    for (double& p : parameters.segment(segment).span<double>())
      p = static_cast<double>(23 * k++ % 32 - 16) / 32;
  return model;
}

std::vector<double> parametersOf(Model& model) {
  std::vector<double> values;
  const StateBlock& parameters = model.block(BlockKind::Parameters);
  for (const Segment& segment : parameters.segments->segments)
    std::ranges::copy(parameters.segment(segment).span<double>(), std::back_inserter(values));
  return values;
}

using Merges = std::vector<std::vector<double>>;  // [merge][parameter]

struct Case {
  std::string problem, updater;
  int workers = 0;
  Merges merges;
};

const char* python() {
  const char* const chosen = std::getenv("MUSTER_NUMPY_PYTHON");
  return chosen ? chosen : "python3";
}

std::vector<Case> runScript(std::string_view script, const std::string& options) {
  const std::string command =
      fmt::format("'{}' -B '{}/{}.py' {}", python(), MUSTER_RULE_SCRIPTS, script, options);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  CAPTURE(command);
  REQUIRE(pclose(pipe) == 0);
  std::vector<Case> cases;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (line.starts_with("case")) {
      auto& one = cases.emplace_back();
      words >> word >> one.problem >> one.updater >> one.workers;
    } else {
      auto& numbers = cases.back().merges.emplace_back();
      while (words >> word) numbers.push_back(std::stod(word));
    }
  }
  REQUIRE(!cases.empty());
  return cases;
}

Merges train(const Case& one, int devices, const AnyStrategy& strategy,
             const std::optional<MergedModelAverageOptions>& averaged) {
  const bool quadratic = one.problem == "quadratic";
  TrainingOptions training{.updater = Sgd{.learningRate = 0.25}};
  if (one.updater == "nesterovs")
    training.updater =
        Nesterovs{.learningRate = StepSchedule{.initial = 0.125, .decay = 0.5, .every = 8}, .momentum = 0.5};
  const auto model = modelOf(quadratic, training);
  FormulaBatches batches(quadratic);
  Merges merges;
  const auto average = averaged ? std::make_shared<MergedModelAverage>(*averaged) : nullptr;
  const auto listener = onMerge([&](const MergeEvent& event) {
    merges.push_back(parametersOf(average ? average->model() : event.trainer.model()));
  });
  Listeners listeners{listener};
  if (average) listeners.insert(listeners.begin(), average);
  builderOf(*model, one.workers, strategy)
      .listeners(listeners)
      .internals({.pretendedDevices = devices})
      .build()
      .fit(batches, kEpochs);
  return merges;
}

/// The largest difference of two elements with the same index.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(std::isfinite(a[i]));
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

bool numpyFound() {
  static const bool found =
      std::system(fmt::format("'{}' -c 'import numpy' >/dev/null 2>&1", python()).c_str()) == 0;
  if (!found) skip("there is no python3 with NumPy (MUSTER_NUMPY_PYTHON names another)");
  return found;
}

std::string replaced(std::string text, std::string_view word, std::string_view by) {
  if (const auto at = text.find(word); at != text.npos) text.replace(at, word.size(), by);
  return text;
}

AnyStrategy strategyOf(const NumpyRow& row, int workers) {
  const auto half = std::to_string(workers % 2 == 0 ? workers / 2 : 1);
  const auto options =
      replaced(replaced(row.options, "{half}", half), "{speeds}", workers == 3 ? "1,0.5,2" : "1,0.5,2,0.75");
  return strategyNamed(row.strategy, options, workers);
}

/// The row itself, or one for each codec.
std::vector<NumpyRow> withCodecs(const NumpyRow& row) {
  if (!contains(row.options, "{codec}")) return {row};
  // Codecs are discontinuous: a difference in rounding changes what is sent only at a boundary, and these
  // trainings never come within 1e-15 of one.
  std::vector<NumpyRow> rows;
  for (const auto& [here, there] :
       {std::pair("bf16", "bf16"), {"int8", "int8"}, {"e3m0", "e3m0"}, {"top-k,codec.share=0.2", "top:0.2"}})
    rows.push_back({row.strategy, replaced(row.options, "{codec}", std::string("codec=") + here),
                    replaced(row.script, "{codec}", std::string("codec=") + there)});
  return rows;
}

void checkRow(std::string_view script, const NumpyRow& row,
              const std::optional<MergedModelAverageOptions>& average) {
  CAPTURE(row.script);
  for (const Case& one : runScript(script, row.script))
    for (const int devices : {0, 2}) {
      INFO("problem ", one.problem, ", updater ", one.updater, ", workers ", one.workers, ", devices ",
           devices);
      const Merges merges = train(one, devices, strategyOf(row, one.workers), average);
      REQUIRE(merges.size() == one.merges.size());
      for (std::size_t merge = 0; merge < merges.size(); ++merge) {
        CAPTURE(merge);
        REQUIRE(distance(merges[merge], one.merges[merge]) < kNumpyTolerance);
      }
    }
}

}  // namespace

void checkAgainstNumpy(std::string_view script, const std::vector<NumpyRow>& rows,
                       const std::optional<MergedModelAverageOptions>& average) {
  if (!numpyFound()) return;
  for (const NumpyRow& row : rows)
    for (const NumpyRow& one : withCodecs(row)) checkRow(script, one, average);
}

}  // namespace muster::test
