#include "store/pickle.h"

#include <gtest/gtest.h>

#include "store/pickle_writer.h"

namespace holdfast::store {
namespace {

using namespace std::string_literals;

bool only_known(std::string_view name) { return name == "known thing" || name == "collections OrderedDict"; }

Result<Pickle> parse(const std::string& text) {
  const BytesView bytes = as_bytes(text);
  return parse_pickle(Bytes(bytes.begin(), bytes.end()), only_known);
}

/// Behind the beginning of protocol 2.
std::string pickled(std::string_view opcodes) {
  std::string text("\x80\x02");
  text.append(opcodes);
  return text;
}

std::string why_refused(const std::string& text) {
  const auto pickle = parse(text);
  return pickle ? "" : pickle.error().message();
}

TEST(Pickle, GivesPlainValues) {
  PickleWriter out;
  out.dict().mark();
  out.text("n").none().text("t").truth(true).text("small").integer(7).text("large").integer(~std::uint64_t{0} / 4);
  out.text("list").list().mark().integer(1).text("x").append_all();
  out.text("tuple").counts(std::vector<std::uint64_t>{2, 3});
  out.set_all();
  const auto pickle = parse_pickle(std::move(out).finish(), only_known);
  ASSERT_TRUE(pickle) << pickle.error().message();
  const auto items = pickle->items(pickle->root());
  ASSERT_EQ(items.size(), 12u);
  EXPECT_EQ(pickle->text(items[0]), "n");
  EXPECT_EQ(items[1].kind, PickleKind::None);
  EXPECT_TRUE(Pickle::truth(items[3]));
  EXPECT_EQ(Pickle::integer(items[5]), 7);
  EXPECT_EQ(Pickle::integer(items[7]), static_cast<std::int64_t>(~std::uint64_t{0} / 4));
  EXPECT_EQ(pickle->text(pickle->items(items[9])[1]), "x");
  EXPECT_EQ(items[11].kind, PickleKind::Tuple);
  EXPECT_EQ(Pickle::integer(pickle->items(items[11])[1]), 3);
}

TEST(Pickle, ReadsNegativeAndLongIntegers) {
  const auto pickle =
      parse("\x80\x02(J\xFE\xFF\xFF\xFF\x8A\x01\xFF\x8A\x00\x8A\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01t."s);
  ASSERT_TRUE(pickle) << pickle.error().message();
  const auto items = pickle->items(pickle->root());
  EXPECT_EQ(Pickle::integer(items[0]), -2);
  EXPECT_EQ(Pickle::integer(items[1]), -1);
  EXPECT_EQ(Pickle::integer(items[2]), 0);
  EXPECT_EQ(items[3].kind, PickleKind::LongInt);
}

TEST(Pickle, ACallIsOnlyWhatWouldBeCalledWithWhat) {
  PickleWriter out;
  out.global("known", "thing").mark().text("a").tuple().call().dict().state();
  const auto pickle = parse_pickle(std::move(out).finish(), only_known);
  ASSERT_TRUE(pickle) << pickle.error().message();
  EXPECT_EQ(pickle->called(pickle->root()), "known thing");
  ASSERT_EQ(pickle->arguments(pickle->root()).size(), 1u);
  EXPECT_EQ(pickle->text(pickle->arguments(pickle->root())[0]), "a");
  EXPECT_EQ(pickle->items(pickle->root()).size(), 3u);
}

TEST(Pickle, AnOrderedDictIsADict) {
  const auto pickle = parse(pickled("ccollections\nOrderedDict\n)RK\x01K\x02s}b."));
  ASSERT_TRUE(pickle) << pickle.error().message();
  EXPECT_EQ(pickle->root().kind, PickleKind::Dict);
  EXPECT_EQ(pickle->items(pickle->root()).size(), 2u);
}

TEST(Pickle, ANameThatWasNotAllowedIsRefusedByThatName) {
  EXPECT_NE(why_refused(pickled("cos\nsystem\n.")).find("byte 2: names os.system"), std::string::npos);
  EXPECT_NE(why_refused("\x80\x04\x8C\x02os\x8C\x06system\x93."s).find("names os.system"), std::string::npos);
  EXPECT_NE(why_refused("\x80\x04\x8C\x05known\x8C\x0Cthing\x00tricks\x93."s).find("names known.thing?tricks"),
            std::string::npos);
  EXPECT_NE(why_refused(pickled("cknown\nthing.__class__\n.")).find("known.thing.__class__"), std::string::npos);
  std::string long_name(5000, 'm');
  long_name.insert(0, 1, 'c');
  long_name.append("\nn\n.");
  EXPECT_LT(why_refused(pickled(long_name)).size(), 400u);
}

TEST(Pickle, CutOffAnywhereIsRefused) {
  PickleWriter out;
  out.global("known", "thing").mark().text("abc").integer(~std::uint64_t{0} / 2).counts(std::vector<std::uint64_t>{5});
  out.tuple().call();
  const Bytes whole = std::move(out).finish();
  ASSERT_TRUE(parse_pickle(whole, only_known));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_pickle(cut, only_known)) << size;
  }
}

TEST(Pickle, AValueThatHoldsItselfIsReadAndFreed) {
  const auto pickle = parse("\x80\x02]q\x00h\x00\x61."s);
  ASSERT_TRUE(pickle) << pickle.error().message();
  const PickleValue& inner = pickle->items(pickle->root())[0];
  EXPECT_EQ(pickle->items(inner)[0].at, pickle->root().at);
}

TEST(Pickle, NeedsLittleMemoryWhateverItSays) {
  EXPECT_NE(why_refused("\x80\x02Nr\xFF\xFF\xFF\xFF."s).find("remembered"), std::string::npos);
  EXPECT_NE(why_refused("\x80\x04\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F."s).find("ends beyond"), std::string::npos);
  EXPECT_NE(why_refused(pickled(std::string(100'000, ']'))).find("memory"), std::string::npos);
  EXPECT_NE(why_refused(pickled(std::string(100'000, '(').append(1, '.'))).find("one value"), std::string::npos);
}

TEST(Pickle, WhatDoesNotFitTogetherIsRefused) {
  for (const std::string& bad : {"."s,          "0."s,
                                 "t."s,         "R."s,
                                 "NNR."s,       "b."s,
                                 "NNb."s,       "Na."s,
                                 "NNa."s,       "}NNNu."s,
                                 "}Ns."s,       "(Nd."s,
                                 "NN."s,        "(N."s,
                                 "h\x07."s,     "]K\x01K\x01s."s,
                                 "}(NNe."s,     "2."s,
                                 "1."s,         "Q."s,
                                 "\x80\x02N."s, "cknown\nthing\n]R."s,
                                 "\x93."s,      "NN\x93."s}) {
    EXPECT_NE(why_refused(pickled(bad)), "") << bad;
  }
}

}  // namespace
}  // namespace holdfast::store
