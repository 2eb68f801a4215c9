#include "examples/resnet18_fashion/options.h"

#include <charconv>
#include <cmath>

namespace example {
namespace {

using muster::Init;
using muster::require;

constexpr std::string_view kIntroduction =
    R"(Trains ResNet-18 with several workers at once, as the multi-GPU chapter of "Dive into Deep Learning" does: plain
SGD, 256 examples a worker, the learning rate 0.1 times the number of workers. After each epoch the network is
tested. A report shows its accuracy by epoch, and which classes it confuses.

  resnet18_fashion                                one worker, Fashion-MNIST, 10 epochs
  resnet18_fashion --workers 2 --report two       two workers with 256 examples each and learning rate 0.2
  resnet18_fashion --data cifar10 --workers 2     in colour, with random crops and mirrored images
  resnet18_fashion --batch 16 --train-examples 6400 --test-examples 2000 --epochs 1     some minutes on two cores

Ctrl-C finishes the current step, averages, writes what there is and exits with 130; a second one quits.
)";

Init parseInit(const std::string& text) {
  if (text == "xavier") return Init::xavier();
  if (text == "he") return Init::he();
  constexpr std::string_view kNormal = "normal";
  double sigma = 0;
  const char* const end = text.data() + text.size();
  const bool normal =
      text.starts_with(kNormal) &&
      std::from_chars(text.data() + kNormal.size(), end, sigma) == std::from_chars_result{end, std::errc{}};
  require(normal && sigma > 0 && std::isfinite(sigma),
          "--init must be xavier, he or normalX with a positive X, as in normal0.01, got {}", text);
  return Init::normal(sigma);
}

/// Rejects options that would have no effect.
void checkCombinations(const Resnet18Options& o, const CommandLine& line) {
  between(o.load.empty() ? 1 : 0, 1'000'000)("epochs", o.epochs);
  if (!o.load.empty())
    line.refuse({"init", "width"}, "cannot be combined with --load, which brings its network");
  require(
      !o.augment || o.placement != muster::PlacementWish::Device,
      "--placement device cannot be combined with --augment, which moves and mirrors the images on the CPU");
  o.data.check();
}

}  // namespace

std::optional<Resnet18Options> readResnet18Options(int argc, const char* const* argv) {
  Resnet18Options o;
  std::optional<double> learningRate;
  std::optional<bool> augment;
  CommandLine line(kIntroduction);
  line.group("Training");
  o.describe(line);
  line.add("batch", o.batch, "N", "examples a batch, of each worker", between(1, 65536));
  line.add("learning-rate", learningRate, "X", "learning rate of plain SGD (default: 0.1 times the workers)",
           positive);
  line.add("epochs", o.epochs, "N", "passes over the data; 0 only with --load, which is tested then");
  line.add("seed", o.seed, "N",
           "seed of the initial weights, the order of the examples, crops and mirrored images", atLeast(0));
  line.addParsed("init", "normal0.01", "NAME",
                 "initial weights: normalX (of standard deviation X, as in normal0.01), xavier or he",
                 [&](const std::string& text) { o.init = parseInit(text); });
  line.add("width", o.width, "N", "channels of the first stage, 64 in the paper; fewer for a small machine",
           between(1, 1024));
  line.add("augment", augment, "BOOL",
           "random crops (moved by up to 4 pixels) and mirrored images (default: with --data cifar10)");
  describePlacement(line, o.placement);
  o.data.describe(line);
  line.group("Files");
  line.add("report", o.report, "DIR",
           "write report.html there (curves, confusion matrix, worst mistakes) and confusion.txt");
  line.add("json", o.json, "FILE", "write options, plan and the results of each epoch", fileName);
  line.add("save", o.save, "FILE", "save the trained network, in the safetensors format");
  line.add("load", o.load, "FILE", "begin with a saved network and its weights, instead of a new one");
  o.watch.describe(line);
  if (!line.read(argc, argv)) return std::nullopt;
  o.learningRate = learningRate.value_or(0.1 * o.workers);
  o.augment = augment.value_or(o.data.name == "cifar10");
  o.take(line);
  o.watch.check(line);
  o.watch.still = !o.report.empty();
  checkCombinations(o, line);
  return o;
}

}  // namespace example
