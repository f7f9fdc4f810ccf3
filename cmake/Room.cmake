# A room is a folder of src/: one static library, the rooms it uses, its tests beside its sources.
#
#   holdfast_room(store USES base world LINKS OpenSSL::Crypto [TEST_USES sim])
function(holdfast_room name)
  cmake_parse_arguments(ROOM "" "" "USES;LINKS;TEST_USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  add_library(holdfast_${name} STATIC ${sources})
  target_include_directories(holdfast_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  list(TRANSFORM ROOM_USES PREPEND holdfast_)
  target_link_libraries(holdfast_${name} PUBLIC ${ROOM_USES} PRIVATE ${ROOM_LINKS})

  if(HOLDFAST_TESTS AND tests)
    list(TRANSFORM ROOM_TEST_USES PREPEND holdfast_)
    holdfast_test(${name}_test SOURCES ${tests} LINKS holdfast_${name} ${ROOM_TEST_USES} ${ROOM_LINKS})
  endif()
endfunction()

# A GoogleTest binary whose tests ctest lists one by one, or with WHOLE as one.
function(holdfast_test name)
  cmake_parse_arguments(TEST "WHOLE" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${TEST_SOURCES})
  target_link_libraries(${name} PRIVATE ${TEST_LINKS} GTest::gtest GTest::gmock GTest::gtest_main rapidcheck
                        Threads::Threads)
  if(TEST_WHOLE) # it runs for long, so it is optimised
    add_test(NAME ${name} COMMAND ${name})
  else()
    target_compile_options(${name} PRIVATE ${HOLDFAST_TEST_OPTIONS})
    if(TARGET holdfast_gtest_header)
      target_precompile_headers(${name} REUSE_FROM holdfast_gtest_header)
    endif()
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60)
  endif()
endfunction()
