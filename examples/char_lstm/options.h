#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "examples/support/training_options.h"

namespace example {

/// How lines are drawn from a model.
struct SampleOptions {
  std::int64_t count = 2;     ///< of the samples
  std::int64_t length = 200;  ///< characters of each
  double temperature = 0.8;   ///< 1: as likely as the model says; towards 0: the likeliest
  std::string prompt;         ///< what the samples begin with; empty: a line end where the text has one
};

/// What the command line can say.
struct CharLstmArguments : WorkerOptions {
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
  std::int64_t sampleEvery = 1;  ///< epochs; 0: at the end only
  std::filesystem::path model = "char-lstm.safetensors";
  std::filesystem::path json = {};  ///< where the results go; "": nowhere
};

/// Reads the command line. @return nothing where help was asked for and has been printed.
/// @throws muster::InvalidArgument with one sentence naming the option that is missing, unknown or out of
///         range.
std::optional<CharLstmArguments> readCharLstmArguments(int argc, const char* const* argv);

}  // namespace example
