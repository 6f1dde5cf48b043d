// Server-sent events with the token, where one is needed. EventSource cannot send a header and a token does not belong into
// an address, so the stream is read with fetch. A feed that breaks comes back by itself, from where it was.

const waitMsMin = 500;
const waitMsMax = 5000;

/**
 * Listens until `signal` aborts. `heard(name, data)` is called for each event; `opened()` at each beginning; `refused(text)`
 * where the server does not take the request, which ends it, and `locked(wasWrong)` where a token is needed. `since` is the
 * id of an event that was heard before.
 */
export async function follow(path, { heard, opened, refused, locked, signal, since = '' }) {
  let lastId = since;
  for (let waitMs = waitMsMin; !signal.aborted; waitMs = Math.min(waitMsMax, waitMs * 2)) {
    try {
      const token = sessionStorage.getItem('sluice-token');
      const headers = {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(lastId === '' ? {} : { 'last-event-id': lastId }),
      };
      // From the origin: the page's own address may hold a name and a password, which fetch does not take.
      const response = await fetch(new URL(path, location.origin), {
        headers,
        cache: 'no-store',
        signal,
      });
      if (response.status === 401) return locked(token !== null);
      if (response.status === 400 || response.status === 404) {
        return refused((await response.text()).trim());
      }
      if (response.ok) {
        waitMs = waitMsMin;
        opened();
        for await (const { id, name, data } of eventsOf(response.body)) {
          if (id !== undefined) lastId = id;
          heard(name, JSON.parse(data));
        }
      }
    } catch {
      // The server is gone or restarting; the line at the top says since when.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

/** Has something done; true where it was not. */
export async function send(path) {
  const token = sessionStorage.getItem('sluice-token');
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const address = new URL(path, location.origin);
  const response = await fetch(address, { method: 'POST', headers }).catch(() => null);
  return response?.ok !== true;
}

/** Events, as far as our server writes them: each field on one line. */
async function* eventsOf(body) {
  let rest = '';
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // Safari cannot walk a stream with `for await`.
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const texts = (rest + part.value).split('\n\n');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const fields = text.split('\n').map((line) => {
        const colon = line.indexOf(': ');
        return [line.slice(0, colon), line.slice(colon + 2)];
      });
      const { id, event, data } = Object.fromEntries(fields);
      yield { id, name: event, data };
    }
  }
}
