#include "examples/resnet18_fashion/options.h"

#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <iostream>
#include <string>

#include "examples/support/command_line.h"
#include "examples/support/data_options.h"
#include "examples/support/device_option.h"

namespace example {
namespace {

namespace po = boost::program_options;
using muster::Init;
using muster::require;

constexpr std::string_view kIntroduction =
    R"(Trains ResNet-18 with several workers at once, as the multi-GPU chapter of "Dive into Deep Learning" does: plain
SGD, 256 examples a worker, the learning rate 0.1 times the number of workers. After each epoch the network is
tested, and its accuracy by epoch is drawn into a file.

  resnet18_fashion                                one worker, Fashion-MNIST, 10 epochs
  resnet18_fashion --workers 2 --out two.svg      two workers with 256 examples each and learning rate 0.2
  resnet18_fashion --data cifar10 --workers 2     in colour, with random crops and mirrored images
  resnet18_fashion --batch 16 --train-examples 6400 --test-examples 2000 --epochs 1     some minutes on two cores

Ctrl-C finishes the step under way, averages, writes what there is and exits with 130; a second one quits.
)";

/// Options whose meaning is only known when all have been read.
struct Rest {
  std::string mode = "averaging", init = "normal0.01", placement = "auto", out, save, load;
  DeviceOption device;
};

po::options_description describeTraining(Options& o, Rest& rest) {
  po::options_description training("Training", kLineLength);
  training.add_options()                                                                       //
      ("workers", withDefault(o.workers, "N"), "threads, each with a replica of the network")  //
      ("mode", withDefault(rest.mode, "NAME"),
       "averaging (of parameters), synchronous (gradients averaged every iteration) or shared (encoded "
       "updates)")  //
      ("averaging-frequency", withDefault(o.averagingFrequency, "N"),
       "iterations of each worker between averages; of averaging only")                               //
      ("batch", withDefault(o.batch, "N"), "examples a batch, of each worker")                        //
      ("learning-rate", value(o.learningRate, "X"), "of plain SGD (default: 0.1 times the workers)")  //
      ("epochs", withDefault(o.epochs, "N"),
       "passes over the data; 0 only with --load, which is tested then")  //
      ("seed", withDefault(o.seed, "N"),
       "of the first weights, the order of the examples, crops and mirrored images")  //
      ("init", withDefault(rest.init, "NAME"),
       "the first weights: normalX (of standard deviation X, as in normal0.01), xavier or he")  //
      ("width", withDefault(o.width, "N"),
       "channels of the first stage, 64 in the paper; fewer for a small machine")  //
      ("augment", value(o.augment, "BOOL"),
       "random crops (moved by up to 4 pixels) and mirrored images (default: with --data cifar10)")  //
      ("threads-per-worker", withDefault(o.threadsPerWorker, "N"), "threads that one worker uses")   //
      ("pin-threads", withDefault(o.pinThreads, "BOOL"), "pin each worker to cores of its own");
  rest.device.describe(training);
  describePlacement(training, rest.placement);
  return training;
}

po::options_description describeFiles(Rest& rest) {
  po::options_description files("Files", kLineLength);
  files.add_options()                                                                            //
      ("out", withDefault(rest.out, "FILE"), "the plot of accuracy by epoch, an SVG drawing")    //
      ("save", value(rest.save, "FILE"), "save the trained network, in the safetensors format")  //
      ("load", value(rest.load, "FILE"),
       "begin with a saved network and its weights, instead of a new one")  //
      ("help", "this text");
  return files;
}

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

void takeRest(Options& o, const Rest& rest, const po::variables_map& given) {
  o.mode = muster::valueNamed<muster::TrainingMode>("--mode", rest.mode);
  if (!said(given, "learning-rate")) o.learningRate = 0.1 * o.workers;
  if (!said(given, "augment")) o.augment = o.data.name == "cifar10";
  o.init = parseInit(rest.init);
  o.device = rest.device.choose();
  o.placement = parsePlacement(rest.placement);
  o.out = rest.out;
  o.save = rest.save;
  o.load = rest.load;
}

void check(const Options& o, const po::variables_map& given) {
  requireRange("workers", o.workers, 1, 1024);
  requireAtLeast<std::int64_t>("averaging-frequency", o.averagingFrequency, 1);
  require(!said(given, "averaging-frequency") || o.mode == muster::TrainingMode::Averaging,
          "--averaging-frequency is of --mode averaging; in the other modes workers meet every iteration");
  requireRange<std::int64_t>("batch", o.batch, 1, 65536);
  require(o.learningRate > 0 && std::isfinite(o.learningRate),
          "--learning-rate must be a positive number, got {}", o.learningRate);
  requireRange<std::int64_t>("epochs", o.epochs, o.load.empty() ? 1 : 0, 1'000'000);
  requireAtLeast<std::int64_t>("seed", o.seed, 0);
  for (const char* option : {"init", "width"})
    require(!said(given, option) || o.load.empty(), "--{} is no use with --load, which brings its network",
            option);
  requireRange<std::int64_t>("width", o.width, 1, 1024);
  require(!o.augment || o.placement != PlacementWish::Device,
          "--placement device is no use with --augment, which moves and mirrors the images on the CPU");
  requireRange("threads-per-worker", o.threadsPerWorker, 1, 1024);
  checkData(o.data);
  require(!o.out.empty(), "--out needs the name of a file");
}

}  // namespace

std::optional<Options> readOptions(int argc, const char* const* argv) {
  Options o;
  Rest rest;
  rest.out = o.out.string();
  po::options_description all(kLineLength);
  all.add(describeTraining(o, rest)).add(describeData(o.data)).add(describeFiles(rest));
  const auto given = parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << kIntroduction << all;
    return std::nullopt;
  }
  takeRest(o, rest, given);
  check(o, given);
  return o;
}

}  // namespace example
