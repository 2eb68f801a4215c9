#include "tests/fuzz/command_line.h"

namespace muster::fuzz {

std::vector<std::string> argumentsIn(std::string_view text) {
  std::vector<std::string> arguments;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return arguments;
}

Bytes line(char program, const std::vector<std::string>& arguments) {
  Bytes bytes{static_cast<std::uint8_t>(program)};
  for (const auto& argument : arguments) {
    if (bytes.size() > 1) bytes.push_back(0);
    bytes.insert(bytes.end(), argument.begin(), argument.end());
  }
  return bytes;
}

const std::vector<Bytes>& validLines() {
  static const std::vector<Bytes> all{
      line('e', {}),
      line('m', {}),
      line('u', {}),
      line('e', {"--text", "book.txt", "--epochs=4", "--lr", "1e-3", "--imagenet"}),
      line('m',
           {"--workers", "4", "--strategy", "synchronous", "--batch", "32", "--page", "--device", "cpu"}),
      line('m',
           {"--strategy", "diloco", "--strategy-options", "rate=0.7,every=100", "--data", "generated",
            "--updater", "adam", "--lr", "1e-3", "--checkpoint-dir", "c", "--checkpoint-minutes", "0.5"}),
      line('a', {"averaging every={1,5} workers={2,4}", "joined", "slow: diloco rate=0.5 learningRate=0.1"}),
      line('a', {"adam: network.updater={\"type\": \"adam\"} batch=8", "network.layers[0].classes={3,4}"}),
      line('u', {"training.workers=4", "network.layers[0].classes=3", "data.batch=8"}),
      line('u', {"training.strategy=diloco", "training.strategy.rate=0.7", "network.updater.learningRate=0.5",
                 "listeners.checkpoints={\"directory\":\"c\"}"})};
  return all;
}

const std::vector<std::string>& hostileTexts() {
  static const std::vector<std::string> all{"0",
                                            "-1",
                                            "1",
                                            "1.5",
                                            "2147483648",
                                            "9223372036854775807",
                                            "9223372036854775808",
                                            "nan",
                                            "inf",
                                            "-inf",
                                            "1e999",
                                            "1e-320",
                                            "",
                                            ",",
                                            "a,,b",
                                            "true",
                                            "no",
                                            "help",
                                            "--",
                                            "-x",
                                            "=",
                                            "0x10",
                                            " 7",
                                            "7 ",
                                            "1,1",
                                            "\xFF",
                                            "cuda:99999999999",
                                            "adam:",
                                            "adam:nan",
                                            "every=0",
                                            "every=-1,every=2",
                                            "rate=",
                                            "momentum=1e400",
                                            "10Gbit",
                                            "1Gbit,-1us",
                                            "65537",
                                            "%prefix%",
                                            "100%"};
  return all;
}

}  // namespace muster::fuzz
