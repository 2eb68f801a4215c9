// The baseline of `output`: a network of libtorch_networks.h computes class probabilities on one thread,
// without gradients, channels-last. Prints one line of JSON.
#include <fmt/format.h>
#include <torch/torch.h>

#include <boost/program_options.hpp>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>

#include "tests/bench/command_line.h"
#include "tests/bench/fixed_numbers.h"
#include "tests/bench/libtorch_networks.h"
#include "tests/bench/libtorch_setup.h"
#include "tests/bench/peak_memory.h"
#include "tests/bench/timing.h"

namespace {

struct Options {
  std::string network = "convnet";
  std::int64_t batch = 128, images = 1024;
  double seconds = 2;
};

void measure(const Options& options) {
  const c10::InferenceMode inference;  // faster than NoGradGuard
  const auto net = libtorch::makeNet(options.network);
  net->eval();
  for (auto& parameter : net->parameters()) {
    muster::bench::fillParameters(parameter.data_ptr<float>(), parameter.numel(), parameter.size(0));
    if (parameter.dim() == 4) parameter.set_data(libtorch::channelsLast(parameter));
  }
  auto images = torch::empty({options.images, 1, 28, 28});
  for (std::int64_t i = 0; i < images.numel(); ++i)
    images.data_ptr<float>()[i] = muster::bench::fixedNumber(static_cast<std::uint64_t>(i));
  images = libtorch::channelsLast(images);
  const auto output = [&](std::int64_t call) {
    const auto first = call * options.batch % options.images;
    return torch::softmax(net->forward(images.narrow(0, first, options.batch)), 1);
  };
  const double calls = muster::bench::callsPerSecond(options.seconds, output);
  fmt::print("{{\"samplesPerSecond\": {:.1f}, \"meanClass\": {:.6f}, \"peakMemoryBytes\": {}}}\n",
             calls * static_cast<double>(options.batch),
             torch::matmul(output(0), torch::arange(10, torch::kFloat)).mean().item<double>(),
             peakMemoryBytes());
}

}  // namespace

int main(int argc, char** argv) try {
  restartTuned(argv);
  namespace po = boost::program_options;
  Options options;
  po::options_description description("Class probabilities by libtorch on one thread");
  auto add = description.add_options();
  add("network", po::value(&options.network), "convnet or lenet [convnet]");
  add("batch", po::value(&options.batch), "images per call [128]");
  add("images", po::value(&options.images), "in turns; a multiple of the batch [1024]");
  add("seconds", po::value(&options.seconds), "measured [2]");
  po::variables_map given;
  if (!muster::bench::readCommandLine(argc, argv, description, given)) return 0;
  pinToCores(0, 1);
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  measure(options);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "libtorch_output: " << error.what() << '\n';
  return 1;
}
