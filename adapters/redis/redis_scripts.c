#include "redis_scripts.h"

#include <stdio.h>
#include <string.h>

#define FENCE                                                                                                \
    "if redis.call('GET',KEYS[1])~=ARGV[1] or redis.call('GET',KEYS[2])~=ARGV[2] then return 'fenced' end "

/* In the order of enum redis_script. */
static const char *const texts[REDIS_SCRIPT_COUNT] = {
    "local h=redis.call('GET',KEYS[1]) "
    "if h and h~=ARGV[1] then return {0,h,redis.call('PTTL',KEYS[1])} end "
    "redis.call('SET',KEYS[1],ARGV[1],'PX',ARGV[2]) "
    "return {redis.call('INCR',KEYS[2]),ARGV[1],0}",

    FENCE "redis.call('PEXPIRE',KEYS[1],ARGV[3]) return 1",

    FENCE "redis.call('DEL',KEYS[1]) return 1",

    FENCE "if ARGV[3]=='0' then redis.call('DEL',KEYS[3]) end "
          "redis.call('HSET',KEYS[3],ARGV[3],ARGV[4]) return 1",

    FENCE
    "if redis.call('HLEN',KEYS[4])~=tonumber(ARGV[4]) then return 'incomplete' end "
    "redis.call('HSET',KEYS[3],'side',ARGV[3],'pieces',ARGV[4],'size',ARGV[5],'at',ARGV[6],'next',ARGV[7],"
    "'hash',ARGV[8],'stream_epoch',ARGV[9],'epoch',ARGV[2],'time',redis.call('TIME')[1]) "
    "redis.call('UNLINK',KEYS[5]) "
    "if ARGV[10]~='' then redis.call('XTRIM',KEYS[6],'MINID',ARGV[10]) end return 1",

    /* An event is written once: its order must be above that of the last one of its topic, which is read and
     * written once a batch. */
    FENCE "local n,last,new=0,{},{} for i=4,#ARGV,3 do local topic,order=ARGV[i],ARGV[i+1] "
          "if not last[topic] then last[topic]=redis.call('HGET',KEYS[4],topic) or '' end "
          "if last[topic]<order then last[topic]=order new[topic]=order n=n+1 "
          "redis.call('XADD',KEYS[3],'MAXLEN','~',ARGV[3],'*','topic',topic,'payload',ARGV[i+2]) end end "
          "for topic,order in pairs(new) do redis.call('HSET',KEYS[4],topic,order) end return n",

    FENCE "redis.call('SET',KEYS[3],ARGV[3]) return 1",

    /* The entry is written first: if Redis refuses that, the numbers stay as they are.
     * A duplicate writes its number again, so that a WAIT behind it waits for the replicas. `e` counts the
     * samples of the whole log. With more sources than ARGV[5], the one that was silent longest is dropped.
     */
    "local src,n,count='s:'..ARGV[1],tonumber(ARGV[2]),tonumber(ARGV[3]) "
    "local v=redis.call('HGET',KEYS[1],src) local next=v and tonumber(string.match(v,'^%d+')) or 0 "
    "local now=redis.call('TIME')[1] "
    "if n<next then redis.call('HSET',KEYS[1],src,next..' '..now) return {0,next} end "
    "if n>next and ARGV[6]~='1' then return {-1,next} end "
    "if not v and redis.call('HLEN',KEYS[1])>tonumber(ARGV[5]) then local oldest,at=nil,nil "
    "local all=redis.call('HGETALL',KEYS[1]) for i=1,#all,2 do "
    "local t=tonumber(string.match(all[i+1],' (%d+)$')) if t and (not at or t<at) then oldest,at=all[i],t "
    "end "
    "end if oldest then redis.call('HDEL',KEYS[1],oldest) end end "
    "local e=tonumber(redis.call('HGET',KEYS[1],'e') or '0') "
    "redis.call('XADD',KEYS[2],'*','s',ARGV[4],'src',ARGV[1],'n',ARGV[2],'e',string.format('%.0f',e),'c',"
    "count) "
    "redis.call('HSET',KEYS[1],'e',string.format('%.0f',e+count),src,(n+count)..' '..now) return {1,n+count}",

    "local t=redis.call('TIME') local now=t[1]*1000+math.floor(t[2]/1000) "
    "redis.call('ZREMRANGEBYSCORE',KEYS[1],'-inf',now) "
    "redis.call('ZADD',KEYS[1],now+tonumber(ARGV[2]),ARGV[1]) "
    "local all=redis.call('ZRANGE',KEYS[1],0,-1) local rank=0 "
    "for _,id in ipairs(all) do if id<ARGV[1] then rank=rank+1 end end return {#all,rank}"};

static const char *const endings[REDIS_KEY_ALL] = {"in",    "src",     "lease",   "epoch",
                                                   "state", "state:a", "state:b", "sums",
                                                   "out",   "seq",     "workers", "partitions"};

void redis_names_make(struct redis_names *n, const char *stream, int partition) {
    for (int k = 0; k < REDIS_KEY_ALL; k++)
        if (k < REDIS_KEY_COUNT)
            snprintf(n->key[k], REDIS_KEY_BYTES, "{%.*s:%d}:%s", REDIS_NAME_BYTES, stream, partition,
                     endings[k]);
        else
            snprintf(n->key[k], REDIS_KEY_BYTES, "{%.*s}:%s", REDIS_NAME_BYTES, stream, endings[k]);
}

struct redis_word redis_text(const char *text) {
    return (struct redis_word){text, strlen(text)};
}

void redis_script_send(struct redis_client *r, int lane, enum redis_script script, const char *const *keys,
                       int key_count, const struct redis_word *arguments, int count, redis_answer *done,
                       void *user) {
    struct redis_word words[3 + REDIS_KEY_COUNT + REDIS_SCRIPT_ARGS];
    char number[16];
    int n = 0;
    snprintf(number, sizeof number, "%d", key_count);
    words[n++] = redis_text("EVAL");
    words[n++] = redis_text(texts[script]);
    words[n++] = redis_text(number);
    for (int i = 0; i < key_count; i++)
        words[n++] = redis_text(keys[i]);
    for (int i = 0; i < count && i < REDIS_SCRIPT_ARGS; i++)
        words[n++] = arguments[i];
    redis_client_send(r, lane, keys[0], words, n, done, user);
}

bool redis_fenced(const redisReply *reply) {
    return reply->type == REDIS_REPLY_STRING && reply->len == 6 && memcmp(reply->str, "fenced", 6) == 0;
}
