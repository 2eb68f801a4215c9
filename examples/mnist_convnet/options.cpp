#include "examples/mnist_convnet/options.h"

#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cmath>
#include <iostream>

#include "examples/support/command_line.h"
#include "examples/support/data_options.h"
#include "examples/support/device_option.h"
#include "muster/core/base/error.h"

namespace example {
namespace {

namespace po = boost::program_options;
using muster::require;

constexpr std::string_view kIntroduction =
    R"(Trains a convolutional network to read digits, with several workers at once: each worker trains a replica
of the network on batches of its own, and every few iterations the replicas are replaced by their mean.

  mnist_convnet                                  3 epochs of MNIST with two workers
  mnist_convnet --workers 4 --averaging-frequency 10 --epochs 10 --report report --json run.json

Ctrl-C finishes the step under way, averages, saves the model and exits with 130; a second one quits.
)";

/// Options whose meaning is only known when all have been read.
struct Rest {
  DeviceOption device;
  std::string mode = "averaging";
  std::string placement = "auto";
  std::string model, resume, checkpointDirectory, report, json;
};

po::options_description describeTraining(Options& o, Rest& rest) {
  po::options_description training("Training", kLineLength);
  training.add_options()                                                                       //
      ("workers", withDefault(o.workers, "N"), "threads, each with a replica of the network")  //
      ("mode", withDefault(rest.mode, "NAME"),                                                 //
       "averaging (of parameters), synchronous (gradients averaged every iteration) or shared (encoded "
       "updates)")                                                                                      //
      ("averaging-frequency", withDefault(o.averagingFrequency, "N"),                                   //
       "iterations of each worker between averages; of averaging only")                                 //
      ("average-updaters", withDefault(o.averageUpdaters, "BOOL"),                                      //
       "average the updater's state (momentum) with the parameters")                                    //
      ("batch", withDefault(o.batch, "N"), "examples a batch")                                          //
      ("epochs", withDefault(o.epochs, "N"), "passes over the data, those of a resumed file included")  //
      ("updater", withDefault(o.updater, "NAME"), "sgd, nesterovs, adam, adamw, rmsprop or adagrad")    //
      ("lr", value(o.learningRate, "X"),                                                                //
       "learning rate (default 0.01; 0.001 with adam, adamw and rmsprop)")                              //
      ("momentum", withDefault(o.momentum, "X"), "of nesterovs")                                        //
      ("l2", withDefault(o.l2, "X"), "L2 regularisation of the weights")                                //
      ("seed", withDefault(o.seed, "N"), "of the first weights and of the order of the examples")       //
      ("threads-per-worker", withDefault(o.threadsPerWorker, "N"), "threads that one worker uses")      //
      ("pin-threads", withDefault(o.pinThreads, "BOOL"), "pin each worker to cores of its own")         //
      ("prefetch", withDefault(o.prefetch, "N"), "batches read ahead, over all workers");
  rest.device.describe(training);
  describePlacement(training, rest.placement);
  return training;
}

po::options_description describeFiles(Options& o, Rest& rest) {
  po::options_description files("Files and output", kLineLength);
  files.add_options()                                                                               //
      ("model", withDefault(rest.model, "FILE"), "the trained network, in the safetensors format")  //
      ("resume", value(rest.resume, "FILE"),
       "go on from a file of this program, up to --epochs; the result is that of a run never interrupted. A "
       "file saved by Ctrl-C within an epoch begins that epoch again, with the parameters it has")       //
      ("checkpoint-dir", value(rest.checkpointDirectory, "DIR"), "save the network there as it trains")  //
      ("checkpoint-every", withDefault(o.checkpointEvery, "N"), "epochs between checkpoints")            //
      ("keep", withDefault(o.keep, "N"), "keep only the last N checkpoints; 0: all")                     //
      ("test-every", withDefault(o.testEvery, "N"), "test every N epochs, too; 0: at the end only")      //
      ("report", value(rest.report, "DIR"),
       "write there the confusion matrix and a picture of misclassified digits")         //
      ("json", value(rest.json, "FILE"), "write configuration and results for scripts")  //
      ("quiet", po::bool_switch(&o.quiet), "print the result only")                      //
      ("help", "this text");
  return files;
}

void checkRanges(const Options& o) {
  requireRange("workers", o.workers, 1, 1024);
  requireAtLeast<std::int64_t>("averaging-frequency", o.averagingFrequency, 1);
  requireRange<std::int64_t>("batch", o.batch, 1, 65536);
  requireAtLeast<std::int64_t>("epochs", o.epochs, 1);
  require(o.learningRate > 0 && std::isfinite(o.learningRate), "--lr must be a positive number, got {}",
          o.learningRate);
  require(o.momentum >= 0 && o.momentum < 1, "--momentum must be at least 0 and below 1, got {}", o.momentum);
  require(o.l2 >= 0 && std::isfinite(o.l2), "--l2 must be a number and not negative, got {}", o.l2);
  requireAtLeast<std::int64_t>("seed", o.seed, 0);
  requireRange("threads-per-worker", o.threadsPerWorker, 1, 1024);
  requireRange<std::int64_t>("prefetch", o.prefetch, 0, 1 << 20);
  checkData(o.data);
  require(!o.model.empty(), "--model needs the name of a file");
  requireAtLeast<std::int64_t>("checkpoint-every", o.checkpointEvery, 1);
  requireAtLeast<std::int64_t>("keep", o.keep, 0);
  requireAtLeast<std::int64_t>("test-every", o.testEvery, 0);
}

/// Options that would have no effect are refused rather than ignored.
void checkCombinations(const Options& o, const po::variables_map& given) {
  const bool averaging = o.mode == muster::TrainingMode::Averaging;
  require(!said(given, "averaging-frequency") || averaging,
          "--averaging-frequency is of --mode averaging; in the other modes workers meet every iteration");
  require(o.averageUpdaters || o.mode != muster::TrainingMode::SynchronousGradients,
          "--average-updaters false: with --mode synchronous the updaters' states are equal anyway");
  require(!said(given, "momentum") || o.updater == "nesterovs",
          "--momentum is of the updater nesterovs, not of {}", o.updater);
  for (const char* option : {"checkpoint-every", "keep"})
    require(!said(given, option) || said(given, "checkpoint-dir"), "--{} needs --checkpoint-dir", option);
}

void takeRest(Options& o, const Rest& rest, const po::variables_map& given) {
  if (given.count("lr") == 0 && (o.updater == "adam" || o.updater == "adamw" || o.updater == "rmsprop"))
    o.learningRate = 0.001;
  o.device = rest.device.choose();
  o.placement = parsePlacement(rest.placement);
  o.mode = muster::valueNamed<muster::TrainingMode>("--mode", rest.mode);
  if (o.mode != muster::TrainingMode::Averaging) o.averagingFrequency = 1;
  o.model = rest.model;
  o.resume = rest.resume;
  o.checkpointDirectory = rest.checkpointDirectory;
  o.report = rest.report;
  o.json = rest.json;
}

}  // namespace

std::optional<Options> readOptions(int argc, const char* const* argv) {
  Options o;
  Rest rest;
  rest.model = o.model.string();
  po::options_description all(kLineLength);
  all.add(describeTraining(o, rest)).add(describeData(o.data)).add(describeFiles(o, rest));
  const auto given = parseCommandLine(argc, argv, all);
  if (given.count("help") > 0) {
    std::cout << kIntroduction << all;
    return std::nullopt;
  }
  takeRest(o, rest, given);
  checkRanges(o);
  checkCombinations(o, given);
  o.makeUpdater().validate();
  return o;
}

muster::Updater Options::makeUpdater() const {
  if (updater == muster::Nesterovs::kType)
    return muster::Nesterovs{.learningRate = learningRate, .momentum = momentum};
  return muster::Updater::named(updater, learningRate);
}

}  // namespace example
