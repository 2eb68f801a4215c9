// The baseline of muster's recurrent layers: libtorch's LSTM and GRU at the shape of recurrent_bench, batch
// 32, 64 steps of 128 features, 256 units, on one thread. Prints the best and the median time of each.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <string_view>
#include <vector>

#include "tests/bench/libtorch_setup.h"
#include "tests/bench/timing.h"

namespace {

constexpr int kRuns = 41;

template <typename F>
void report(std::string_view name, F f) {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < 5; ++i) f();
  std::vector<double> milliseconds;
  for (int i = 0; i < kRuns; ++i) {
    const auto begin = Clock::now();
    f();
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  fmt::print("{:<14} best {:6.2f} ms, median {:6.2f} ms\n", name, std::ranges::min(milliseconds),
             muster::bench::medianOf(milliseconds));
}

template <typename Options, typename Layer>
void measure(std::string_view name) {
  Layer layer(Options(128, 256).batch_first(true));
  const auto x = torch::randn({32, 64, 128}).requires_grad_(true);
  const auto gradY = torch::randn({32, 64, 256});
  report(fmt::format("{} forward", name), [&] {
    const torch::NoGradGuard inference;
    layer->forward(x);
  });
  report(fmt::format("{} training", name), [&] {
    layer->zero_grad();
    auto y = std::get<0>(layer->forward(x));
    y.backward(gradY);
  });
}

}  // namespace

int main(int, char** argv) try {
  restartTuned(argv);
  at::set_num_threads(1);
  at::set_num_interop_threads(1);
  measure<torch::nn::LSTMOptions, torch::nn::LSTM>("LSTM");
  measure<torch::nn::GRUOptions, torch::nn::GRU>("GRU");
  return 0;
} catch (const std::exception& error) {
  std::cerr << "libtorch_lstm: " << error.what() << '\n';
  return 1;
}
