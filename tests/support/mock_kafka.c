/* mock_kafka BROKERS: librdkafka's mock cluster as a process of its own, for tests of svmstream-kafka. It
 * prints the address of the brokers, then obeys lines on standard input and answers each with `ok` or `error
 * TEXT`:
 *
 *     topic NAME PARTITIONS       creates a topic
 *     deny NAME CODE              requests about the topic fail with this error of Kafka (0: no more)
 *     fail API CODE COUNT         the next COUNT requests of this kind fail
 *     down | up                   all brokers
 *     put NAME PARTITION KEY VALUE  a record; both are hexadecimal, - is none
 *     dump NAME                   the committed records, each a line PARTITION OFFSET KEY VALUE, likewise
 *
 * The cluster holds everything in memory (about 5 MiB a partition, older records are dropped) and ends with
 * standard input. */
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES (4 << 20)

/* A client of our own cluster. */
static rd_kafka_t *mock_client(const rd_kafka_mock_cluster_t *cluster, rd_kafka_type_t type) {
    const char *const pairs[] = {"bootstrap.servers", rd_kafka_mock_cluster_bootstraps(cluster), "log_level",
                                 "0"},
                      *const more[] = {"group.id", "mock_kafka",        "enable.partition.eof",
                                       "true",     "fetch.wait.max.ms", "10"};
    char why[512];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (int i = 0; i < 4; i += 2)
        rd_kafka_conf_set(conf, pairs[i], pairs[i + 1], why, sizeof why);
    for (int i = 0; type == RD_KAFKA_CONSUMER && i < 6; i += 2)
        rd_kafka_conf_set(conf, more[i], more[i + 1], why, sizeof why);
    return rd_kafka_new(type, conf, why, sizeof why);
}

/* Turns hexadecimal digits into bytes, in place: the digits of a byte are read before it is written. */
static size_t mock_bytes(char *hex) {
    static const char digits[] = "0123456789abcdef";
    size_t n = 0;
    for (; hex[2 * n] && hex[2 * n + 1]; n++)
        hex[n] =
            (char)(16 * (strchr(digits, hex[2 * n]) - digits) + (strchr(digits, hex[2 * n + 1]) - digits));
    return n;
}

static int mock_put(const rd_kafka_mock_cluster_t *cluster, char *line) {
    char *name = strtok(line, " \n"), *partition = strtok(NULL, " \n"), *key = strtok(NULL, " \n"),
         *value = strtok(NULL, " \n");
    if (!value)
        return RD_KAFKA_RESP_ERR__INVALID_ARG;
    rd_kafka_t *client = mock_client(cluster, RD_KAFKA_PRODUCER);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    const size_t key_size = *key == '-' ? 0 : mock_bytes(key), size = *value == '-' ? 0 : mock_bytes(value);
    int code = rd_kafka_produce(topic, atoi(partition), RD_KAFKA_MSG_F_COPY, *value == '-' ? NULL : value,
                                size, *key == '-' ? NULL : key, key_size, NULL);
    if (code == 0)
        code = rd_kafka_flush(client, 5000);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return code;
}

static void mock_print(const void *bytes, size_t size, char end) {
    if (!bytes)
        putchar('-');
    for (size_t i = 0; bytes && i < size; i++)
        printf("%02x", ((const unsigned char *)bytes)[i]);
    putchar(end);
}

static int mock_dump(const rd_kafka_mock_cluster_t *cluster, char *line) {
    const char *name = strtok(line, " \n");
    rd_kafka_t *client = mock_client(cluster, RD_KAFKA_CONSUMER);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, name, NULL);
    const struct rd_kafka_metadata *data = NULL;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int left = 0;
    if (rd_kafka_metadata(client, 0, topic, &data, 5000) == 0)
        left = data->topics[0].partition_cnt;
    for (int p = 0; p < left; p++)
        rd_kafka_topic_partition_list_add(list, name, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(client, list);
    while (left > 0) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(client, 5000);
        if (!m)
            break;
        if (m->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            left--;
        } else if (m->err == 0) {
            printf("%d %lld ", m->partition, (long long)m->offset);
            mock_print(m->key, m->key_len, ' ');
            mock_print(m->payload, m->len, '\n');
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_topic_partition_list_destroy(list);
    if (data)
        rd_kafka_metadata_destroy(data);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(client);
    return left > 0 ? RD_KAFKA_RESP_ERR__TIMED_OUT : 0;
}

static int mock_obey(rd_kafka_mock_cluster_t *cluster, char *line) {
    char name[300];
    int number, code, count;
    if (sscanf(line, "topic %299s %d", name, &number) == 2)
        return rd_kafka_mock_topic_create(cluster, name, number, 1);
    if (sscanf(line, "deny %299s %d", name, &code) == 2)
        return rd_kafka_mock_topic_set_error(cluster, name, (rd_kafka_resp_err_t)code), 0;
    if (sscanf(line, "fail %d %d %d", &number, &code, &count) == 3) {
        for (int i = 0; i < count; i++)
            rd_kafka_mock_push_request_errors(cluster, (int16_t)number, 1, (rd_kafka_resp_err_t)code);
        return 0;
    }
    if (strncmp(line, "put ", 4) == 0)
        return mock_put(cluster, line + 4);
    if (strncmp(line, "dump ", 5) == 0)
        return mock_dump(cluster, line + 5);
    if (strncmp(line, "down", 4) == 0)
        return rd_kafka_mock_broker_set_down(cluster, -1);
    if (strncmp(line, "up", 2) == 0)
        return rd_kafka_mock_broker_set_up(cluster, -1);
    return RD_KAFKA_RESP_ERR__INVALID_ARG;
}

int main(int argc, char **argv) {
    char why[512], *line = malloc(LINE_BYTES);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    rd_kafka_mock_cluster_t *cluster =
        client ? rd_kafka_mock_cluster_new(client, argc > 1 ? atoi(argv[1]) : 1) : NULL;
    if (!cluster || !line) {
        fprintf(stderr, "mock_kafka: %s\n", why);
        return 1;
    }
    printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
    fflush(stdout);
    while (fgets(line, LINE_BYTES, stdin)) {
        const int code = mock_obey(cluster, line);
        printf(code ? "error %s\n" : "ok\n", rd_kafka_err2str((rd_kafka_resp_err_t)code));
        fflush(stdout);
    }
    return 0; /* the cluster goes with the process */
}
