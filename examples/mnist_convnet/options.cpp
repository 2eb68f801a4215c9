#include "examples/mnist_convnet/options.h"

#include "muster/core/optim/updater.h"

namespace example {
namespace {

using muster::require;

constexpr std::string_view kIntroduction =
    R"(Trains a convolutional network to read digits, with several workers at once: each worker trains a replica
of the network on batches of its own, and every few iterations the replicas are replaced by their mean.

  mnist_convnet                                  3 epochs of MNIST with two workers
  mnist_convnet --workers 4 --averaging-frequency 10 --epochs 10 --report report --json run.json

Ctrl-C finishes the current step, averages, saves the model and exits with 130; a second one quits.
)";

/// A rule: minutes must fit the clock's 64-bit nanoseconds, as in run files.
void clockMinutes(const char* option, double value) {
  constexpr double kMost = 1e8;  // 190 years
  require(value >= 0 && value <= kMost, "--{} must be between 0 and {}, got {}", option, kMost, value);
}

void describeTraining(CommandLine& line, Options& o, std::optional<double>& learningRate) {
  line.group("Training");
  o.describe(line);
  line.add("average-updaters", o.averageUpdaters, "BOOL",
           "average the updater's state (momentum) with the parameters");
  line.add("batch", o.batch, "N", "examples a batch", between(1, 65536));
  line.add("epochs", o.epochs, "N", "passes over the data, those of a resumed file included", atLeast(1));
  line.add("updater", o.updater, "NAME", "one of " + muster::Updater::registry().names());
  line.add("lr", learningRate, "X", "learning rate (default: the updater's own, at most 0.01)", positive);
  line.add("momentum", o.momentum, "X", "momentum of nesterovs", belowOne);
  line.add("l2", o.l2, "X", "L2 regularisation of the weights", notNegative);
  line.add("seed", o.seed, "N", "seed of the initial weights and of the order of the examples", atLeast(0));
  line.add("prefetch", o.prefetch, "N", "batches read ahead, over all workers", between(0, 1 << 20));
  describePlacement(line, o.placement);
  line.group("Several processes");
  o.nodeOptions.describe(line);
}

void describeFiles(CommandLine& line, Options& o) {
  line.group("Files and output");
  line.add("model", o.model, "FILE", "the trained network, in the safetensors format");
  line.add(
      "resume", o.resume, "PATH",
      "continue from a file that this program saved, up to --epochs, or from the newest complete checkpoint "
      "of a directory. From a checkpoint the result has the same bits as an uninterrupted run, except after "
      "Ctrl-C, which merges early, and with other --workers or --threads-per-worker. If --checkpoint-dir "
      "names the same directory, it may be empty or missing: then the training begins, so that the same "
      "command line starts and restarts it");
  line.add("checkpoint-dir", o.checkpointDirectory, "DIR",
           "save checkpoints there during the training; if it holds some of an earlier one, --resume must "
           "name it");
  line.add("checkpoint-every", o.checkpointEvery, "N", "epochs between checkpoints", atLeast(1));
  line.add("checkpoint-iterations", o.checkpointIterations, "N",
           "iterations between checkpoints within an epoch; 0: none there", atLeast(0));
  line.add("checkpoint-minutes", o.checkpointMinutes, "X",
           "minutes between checkpoints within an epoch; 0: none", clockMinutes);
  line.add("keep", o.keep, "N", "keep only the last N checkpoints; 0: all", atLeast(0));
  line.add("test-every", o.testEvery, "N", "test every N epochs, too; 0: at the end only", atLeast(0));
  line.add("test-iterations", o.testIterations, "N", "test after the first merge of every N iterations, too",
           atLeast(0));
  line.add("report", o.report, "DIR",
           "write report.html there (curves, confusion matrix, worst mistakes) and confusion.txt; the curves "
           "are also in a file of their own, which a resumed training continues");
  line.add("json", o.json, "FILE", "write configuration and results for scripts");
  line.flag("quiet", o.quiet, "print the result only");
  o.watch.describe(line);
}

/// Rejects options that would have no effect.
void checkCombinations(const Options& o, const CommandLine& line) {
  if (!o.strategy.empty())
    line.refuse({"average-updaters"},
                "cannot be combined with --strategy; set updaterState=keep in --strategy-options");
  require(o.averageUpdaters || o.mode != muster::TrainingMode::SynchronousGradients,
          "--average-updaters false: with --mode synchronous the updaters' states are equal anyway");
  if (o.updater != "nesterovs")
    line.refuse({"momentum"}, fmt::format("needs the updater nesterovs, not {}", o.updater));
  if (o.nodeOptions.minNodes)
    line.refuse({"page", "curves"},
                "cannot be combined with --min-nodes: it is not known beforehand which process shows it");
  if (!line.said("checkpoint-dir"))
    line.refuse({"checkpoint-every", "checkpoint-iterations", "checkpoint-minutes", "keep"},
                "needs --checkpoint-dir");
  o.data.check();
}

}  // namespace

std::optional<Options> readOptions(int argc, const char* const* argv) {
  Options o;
  std::optional<double> learningRate;
  CommandLine line(kIntroduction);
  describeTraining(line, o, learningRate);
  o.data.describe(line);
  describeFiles(line, o);
  if (!line.read(argc, argv)) return std::nullopt;
  o.learningRate = learningRate.value_or(defaultLearningRate(o.updater));
  o.take(line);
  o.watch.check(line);
  o.nodeOptions.check(line);
  checkCombinations(o, line);
  o.makeUpdater().validate();
  return o;
}

muster::Updater Options::makeUpdater() const {
  if (updater == muster::Nesterovs::kType)
    return muster::Nesterovs{.learningRate = learningRate, .momentum = momentum};
  return muster::Updater::named(updater, learningRate);
}

}  // namespace example
