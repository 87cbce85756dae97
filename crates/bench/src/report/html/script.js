// The filter, the view of one query across all engines, and addresses that lead to both. Text is only ever set as text.
(function () {
  'use strict';
  var STEP = 50;
  var $ = function (id) { return document.getElementById(id); };
  var data, rows = [], limit = STEP;

  function make(tag, text, attributes) {
    var element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    for (var name in attributes || {}) element.setAttribute(name, attributes[name]);
    return element;
  }
  // A name or a query by somebody else: its direction of writing stays its own.
  function foreign(text) { return make('bdi', text); }
  function cell(tag, children, attributes) {
    var element = make(tag, null, attributes);
    [].concat(children).forEach(function (child, at) {
      if (at && tag === 'td') element.append(make('br'));
      element.append(child);
    });
    return element;
  }

  // The worst of the ranks: Infinity where a needed tool was not found, 0 where none is needed.
  function worst(ranks) {
    return ranks.reduce(function (most, rank) { return Math.max(most, rank === null ? Infinity : rank); }, 0);
  }

  function prepare() {
    data.collections.forEach(function (collection) {
      collection.queries.forEach(function (query) {
        query.of.forEach(function (answer, at) {
          rows.push({
            collection: collection, query: query, engine: collection.engines[at].name,
            recorded: collection.engines[at].evidence === 'recorded', first: at === 0, answer: answer,
            rank: worst(answer.ranks), place: collection.name + '/' + query.id,
            needed: query.needed.map(function (group) { return collection.tools[group[0]]; }),
            took: answer.first.length ? collection.tools[answer.first[0]] : ''
          });
        });
      });
    });
  }

  // Terms of the filter: an optional -, an optional NAME: or rank with a comparison, and a word or "words".
  function parse(text) {
    var terms = [], pattern = /(-?)(?:([a-z]+)(:|>=|<=|>|<|=))?(?:"([^"]*)"|(\S+))/gi, match;
    while ((match = pattern.exec(text))) {
      var value = match[4] !== undefined ? match[4] : match[5];
      terms.push({ not: match[1] === '-', field: (match[2] || '').toLowerCase(), sign: match[3] || ':', value: value.toLowerCase() });
    }
    return terms;
  }
  function holds(text, value) { return text.toLowerCase().indexOf(value) >= 0; }
  function ranked(row, term) {
    var wanted = term.value === 'none' ? Infinity : Number(term.value);
    switch (term.sign) {
      case '>': return row.rank > wanted;
      case '<': return row.rank > 0 && row.rank < wanted;
      case '>=': return row.rank >= wanted;
      case '<=': return row.rank > 0 && row.rank <= wanted;
      default: return row.rank === wanted;
    }
  }
  var FIELDS = {
    engine: function (row, term) { return row.engine.toLowerCase() === term.value; },
    collection: function (row, term) { return row.collection.name.toLowerCase() === term.value; },
    tool: function (row, term) { return row.needed.some(function (name) { return holds(name, term.value); }); },
    took: function (row, term) { return holds(row.took, term.value); },
    because: function (row, term) { return row.answer.because.some(function (cause) { return holds(cause, term.value); }); },
    register: function (row, term) { return (row.query.register || '').toLowerCase() === term.value; },
    id: function (row, term) { return row.query.id.toLowerCase() === term.value; },
    rank: ranked
  };
  function free(row, term) {
    var text = term.field ? term.field + term.sign + term.value : term.value;
    return holds(row.query.text, text) || holds(row.place, text) || holds(row.took, text) ||
      row.needed.some(function (name) { return holds(name, text); });
  }
  function matches(row, terms) {
    var named = terms.some(function (term) { return term.field === 'engine'; });
    if (!named && !row.first) return false;
    return terms.every(function (term) {
      var field = Object.prototype.hasOwnProperty.call(FIELDS, term.field) ? FIELDS[term.field] : free;
      return field(row, term) !== term.not;
    });
  }

  function address(filter, place) {
    var parts = ['f=' + encodeURIComponent(filter)];
    if (place) parts.push('q=' + encodeURIComponent(place));
    return '#' + parts.join('&');
  }
  function shownRank(rank) { return rank === Infinity ? '–' : rank === 0 ? '' : String(rank); }

  function list() {
    var filter = $('query').value, terms = parse(filter);
    var found = rows.filter(function (row) { return matches(row, terms); });
    var body = document.createDocumentFragment();
    found.slice(0, limit).forEach(function (row) {
      var link = make('a', null, { href: address(filter, row.place) });
      link.append(foreign(row.place));
      var line = make('tr');
      line.append(
        cell('th', link, { scope: 'row' }), cell('td', foreign(row.query.text)),
        cell('td', row.needed.map(foreign)), make('td', shownRank(row.rank), { 'class': 'n' }),
        cell('td', foreign(row.took || (row.recorded ? 'not recorded' : '–'))), make('td', row.answer.because.join('; ')));
      body.append(line);
    });
    var table = $('queries');
    table.tBodies[0].replaceChildren(body);
    table.caption.textContent = 'Queries that match the filter';
    var engines = found.map(function (row) { return row.engine; }).filter(function (name, at, all) { return all.indexOf(name) === at; });
    $('count').textContent = found.length + ' of ' + rows.length + ' rankings' +
      (engines.length ? ', engine ' + engines.join(', ') : '') + (found.length > limit ? '; the first ' + limit + ' are shown' : '');
    $('more').hidden = found.length <= limit;
  }

  function one(place) {
    var panel = $('one'), found = rows.filter(function (row) { return row.place === place; });
    panel.hidden = !found.length;
    if (!found.length) { panel.replaceChildren(); return; }
    var row = found[0], names = row.collection.tools, title = make('h3', null);
    title.append(foreign(place));
    var asked = make('p', 'Asked: ');
    asked.append(foreign(row.query.text));
    if (row.query.register) asked.append(' (' + row.query.register + ')');
    var needed = make('p', 'Needed: ');
    if (!row.query.needed.length) needed.append('no tool answers it');
    row.query.needed.forEach(function (group, at) {
      if (at) needed.append(', ');
      needed.append(foreign(group.map(function (item) { return names[item]; }).join(' or ')));
    });
    var wanted = [].concat.apply([], row.query.needed), table = make('table'), body = make('tbody'), head = make('tr');
    ['engine', 'rank', 'ranked', 'why the tool is missing'].forEach(function (name) { head.append(make('th', name, { scope: 'col' })); });
    found.forEach(function (each) {
      var order = make('ol');
      each.answer.first.forEach(function (item) {
        var entry = make('li', null, wanted.indexOf(item) >= 0 ? { 'class': 'hit' } : {});
        entry.append(foreign(names[item]));
        if (wanted.indexOf(item) >= 0) entry.append(' (needed)');
        order.append(entry);
      });
      var line = make('tr');
      line.append(cell('th', foreign(each.engine), { scope: 'row' }), make('td', each.answer.ranks.map(function (rank) {
        return rank === null ? '–' : rank;
      }).join(', ')), each.answer.first.length ? cell('td', order) : make('td', each.recorded ? 'Only the ranks of the needed tools are recorded, not the list.' : 'nothing'), make('td', each.answer.because.join('; ')));
      body.append(line);
    });
    var thead = make('thead');
    thead.append(head);
    table.append(make('caption', 'The first ' + data.shown + ' tools of every engine'), thead, body);
    var scroll = make('div', null, { 'class': 'scroll', role: 'region', 'aria-label': 'Engines', tabindex: '0' });
    scroll.append(table);
    var close = make('a', 'Close', { href: address($('query').value) });
    panel.replaceChildren(title, asked, needed, scroll, close);
    panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: 'nearest' });
  }

  function follow() {
    var hash = location.hash.slice(1), parts = {};
    hash.split('&').forEach(function (part) {
      var at = part.indexOf('=');
      if (at <= 0) return;
      try { parts[part.slice(0, at)] = decodeURIComponent(part.slice(at + 1)); } catch (broken) { /* not an address of ours */ }
    });
    if (parts.f !== undefined && parts.f !== $('query').value) $('query').value = parts.f;
    if (parts.f !== undefined && parts.q === undefined) $('failures').scrollIntoView();
    list();
    one(parts.q);
  }

  async function read() {
    var element = $('data'), text = element.textContent;
    if (!element.dataset.packed) return JSON.parse(text);
    var bytes = Uint8Array.from(atob(text), function (letter) { return letter.charCodeAt(0); });
    var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(element.dataset.packed));
    return JSON.parse(await new Response(stream).text());
  }

  read().then(function (read) {
    data = read;
    prepare();
    $('filter').hidden = false;
    $('filter').addEventListener('submit', function (event) { event.preventDefault(); });
    $('query').addEventListener('input', function () {
      limit = STEP;
      history.replaceState(null, '', address($('query').value));
      list();
      one();
    });
    $('more').addEventListener('click', function () { limit += STEP; list(); });
    addEventListener('hashchange', follow);
    follow();
    document.documentElement.dataset.ready = 'yes';
  }).catch(function (error) {
    // The report stays readable without its data; what is missing is said where it would stand.
    var said = make('p', 'The queries cannot be read in this browser: ' + error.message, { role: 'alert' });
    $('failures').append(said);
  });
})();
