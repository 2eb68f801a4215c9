#include "muster/parallel/gloo/rendezvous.h"

#include <random>
#include <sstream>
#include <thread>

#include "muster/parallel/exchange/node_transport.h"

namespace muster {
namespace {

using namespace std::chrono_literals;

const std::string kMagic = "muster-rendezvous-1";

std::string drawn() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::string hexOf(std::span<const char> bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// The bytes; empty if the text does not hold `size` bytes.
std::vector<char> bytesOf(const std::string& text, std::size_t size) {
  if (text.size() != 2 * size || text.find_first_not_of("0123456789abcdef") != std::string::npos) return {};
  std::vector<char> bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return bytes;
}

}  // namespace

Rendezvous::Rendezvous(NodeStore& store, std::string prefix, int node, int nodes)
    : store_(store), prefix_(std::move(prefix)), node_(node), nodes_(nodes) {}

Rendezvous::~Rendezvous() {
  try {
    if (card_.number.empty() || readCard(node_).number != card_.number) return;  // not this process's
    store_.erase(cardName(node_));
    if (node_ == 0) store_.erase(sessionName());
  } catch (const std::exception&) {  // texts that are left mislead no node
  }
}

std::vector<Rendezvous::Address> Rendezvous::awaitAll(std::span<const Address> own,
                                                      std::chrono::milliseconds patience) {
  card_ = {.number = drawn(), .session = "-", .nodes = nodes_, .addresses = {own.begin(), own.end()}};
  for (const auto& address : own) addressSize_ = std::max(addressSize_, address.size());
  writeCard();
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!(node_ == 0 ? convene() : join())) {
    const auto number = readCard(node_).number;
    if (number.empty()) writeCard();  // another process has removed it
    if (!number.empty() && number != card_.number)
      throw NodeFailure(fmt::format("another process has joined {} as node {}", store_.describe(), node_));
    if (std::chrono::steady_clock::now() > end)
      throw NodeFailure(fmt::format("not all nodes have joined {} in {} s: {}", store_.describe(),
                                    std::chrono::duration<double>(patience).count(), absent()));
    std::this_thread::sleep_for(10ms);
  }
  std::vector<Address> all(static_cast<std::size_t>(nodes_));
  for (int n = 0; n < nodes_; ++n) {
    if (n == node_) continue;
    const Card card = readCard(n);
    if (card.number != session_.numbers[static_cast<std::size_t>(n)])
      throw NodeFailure(fmt::format(
          "node {} has left {} before all were connected, or another process has joined as node {}", n,
          store_.describe(), n));
    all[static_cast<std::size_t>(n)] = card.addresses[static_cast<std::size_t>(node_)];
  }
  return all;
}

/// Node 0 opens a session with the numbers of all nodes, and a new session if a number changes.
bool Rendezvous::convene() {
  std::vector<std::string> numbers = {card_.number};
  bool agreed = true;
  for (int n = 1; n < nodes_; ++n) {
    const Card card = readCard(n);
    if (card.number.empty()) return false;
    numbers.push_back(card.number);
    agreed = agreed && card.session == session_.name;
  }
  if (numbers != session_.numbers) {
    session_ = {.name = drawn(), .numbers = std::move(numbers)};
    writeSession();
    return nodes_ == 1;
  }
  if (!agreed) return false;
  session_.complete = true;
  writeSession();
  return true;
}

bool Rendezvous::join() {
  const Session session = readSession();
  if (session.numbers.size() != static_cast<std::size_t>(nodes_) ||
      session.numbers[static_cast<std::size_t>(node_)] != card_.number)
    return false;
  session_ = session;
  if (card_.session != session.name) {
    card_.session = session.name;
    writeCard();
  }
  return session.complete;
}

/// As in "node 2 is missing".
std::string Rendezvous::absent() const {
  std::string all;
  for (int n = 0; n < nodes_; ++n) {
    if (n == node_) continue;
    const Card card = readCard(n);
    const bool answers = node_ > 0 || session_.name.empty() || card.session == session_.name;
    if (!card.number.empty() && answers) continue;
    std::string why = "is missing";
    if (card.nodes != 0 && card.nodes != nodes_)
      why = fmt::format("counts {} nodes, and this one {}", card.nodes, nodes_);
    else if (!card.number.empty())
      why = "has left a file and does not answer";
    all += fmt::format("{}node {} {}", all.empty() ? "" : "; ", n, why);
  }
  return all.empty() ? "all have files there, and one of these may be left from an earlier run" : all;
}

std::string Rendezvous::cardName(int node) const {
  return fmt::format("{}node-{}", prefix_, node);
}

std::string Rendezvous::sessionName() const {
  return prefix_ + "session";
}

void Rendezvous::writeCard() {
  std::string text = fmt::format("{} {} {} {}\n", kMagic, card_.number, card_.session, nodes_);
  for (const auto& address : card_.addresses) text += address.empty() ? "-\n" : hexOf(address) + '\n';
  store_.put(cardName(node_), text);
}

/// The text of a node; without a number if there is none for a training of `nodes_` nodes.
Rendezvous::Card Rendezvous::readCard(int node) const {
  std::istringstream text(store_.get(cardName(node)));
  std::string magic, word;
  Card card;
  text >> magic >> card.number >> card.session >> card.nodes;
  if (!text || magic != kMagic) return {};
  for (int n = 0; n < nodes_; ++n) {
    text >> word;
    card.addresses.push_back(bytesOf(word, addressSize_));
    if (card.nodes != nodes_ || !text || (n != node && card.addresses.back().empty()))
      return {.number = {}, .session = {}, .nodes = card.nodes, .addresses = {}};
  }
  return card;
}

void Rendezvous::writeSession() const {
  std::string text =
      fmt::format("{} {} {}\n", kMagic, session_.name, session_.complete ? "complete" : "open");
  for (const auto& number : session_.numbers) text += number + '\n';
  store_.put(sessionName(), text);
}

Rendezvous::Session Rendezvous::readSession() const {
  std::istringstream text(store_.get(sessionName()));
  std::string magic, state, word;
  Session session;
  text >> magic >> session.name >> state;
  if (!text || magic != kMagic) return {};
  session.complete = state == "complete";
  while (text >> word) session.numbers.push_back(word);
  return session;
}

}  // namespace muster
