#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "examples/support/training_options.h"

namespace example {

/// How text is sampled from a model.
struct SampleOptions {
  std::int64_t count = 2;     ///< number of samples
  std::int64_t length = 200;  ///< characters per sample
  double temperature = 0.8;   ///< 1: the model's probabilities; near 0: the most likely character
  std::string prompt;         ///< samples begin with it; empty: a line end if the text has one
};

/// Command-line options.
struct CharLstmArguments : WorkerOptions {
  static constexpr std::int64_t kMostSteps = 65536;

  std::filesystem::path text;
  std::filesystem::path load;  ///< sample from this file instead of training

  std::int64_t epochs = 10;
  std::int64_t batch = 32;
  std::int64_t steps = 64;
  std::int64_t units = 128;
  std::int64_t layers = 2;
  std::int64_t embedding = 32;
  double dropout = 0;
  double learningRate = 0.002;
  double clipNorm = 5;
  std::int64_t seed = 123;

  SampleOptions sample;
  std::int64_t sampleEvery = 1;  ///< epochs; 0: only at the end
  std::filesystem::path model = "char-lstm.safetensors";
  std::filesystem::path json = {};  ///< file for the results; "": none
};

/// Reads the command line. @return nothing if it printed the help.
/// @throws muster::InvalidArgument naming the option that is missing, unknown or out of range.
std::optional<CharLstmArguments> readCharLstmArguments(int argc, const char* const* argv);

}  // namespace example
