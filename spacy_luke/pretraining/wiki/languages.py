"""Words that differ between wikis and are not in their exports.

An export's ``<siteinfo>`` names the namespaces, but not their aliases, the prefixes of other wikis,
and the words for "redirect" and "disambiguation". Where a name has one role in all languages, its
table is a union over languages, so that dumps with a missing or wrong siteinfo can be read. The
pages of a dump correct what is wrong for their wiki (``sites.Names``). All comparisons are
casefolded.
"""

import re


def words(text: str) -> list[str]:
    """Names separated by white space. An underscore in a name means a space."""
    return [word.replace("_", " ") for word in text.split()]


# Names of namespaces that are valid in all wikis.
CANONICAL_NAMESPACES = {
    -2: "Media", -1: "Special", 1: "Talk", 2: "User", 3: "User talk", 4: "Project",
    5: "Project talk", 6: "File", 7: "File talk", 8: "MediaWiki", 9: "MediaWiki talk",
    10: "Template", 11: "Template talk", 12: "Help", 13: "Help talk", 14: "Category",
    15: "Category talk",
}  # fmt: skip
FILE, CATEGORY, TEMPLATE = 6, 14, 10

FILE_NAMES = words("""
    image archivo imagen fichier datei bild immagine bestand afbeelding ficheiro arquivo imagem
    plik grafika файл изображение зображення файла ملف صورة پرونده تصویر ファイル 画像 文件 档案 檔案 图像 圖像
    파일 그림 fil bilde kuva tiedosto soubor obrázok súbor fájl kép fișier imagine dosya resim
    berkas gambar imej tập_tin hình קובץ תמונה αρχείο εικόνα датотека слика datoteka slika
    fitxer imatge fitxategi irudi failas vaizdas attēls pilt dosiero चित्र ไฟล์ ภาพ ছবি படிமம்
    billede imaxe картинка
    fayl şəkil сурет ფაილი სურათი պատկեր picha
""")

CATEGORY_NAMES = words("""
    categoría catégorie kategorie categoria categorie kategoria категория категорія تصنيف رده
    カテゴリ 分类 分類 분류 kategori kategoriya luokka kategória kategória kategorija категорија
    kategooria kategorio thể_loại קטגוריה κατηγορία श्रेणी หมวดหมู่ বিষয়শ্রেণী பகுப்பு санат
    კატეგორია կատեգորիա jamii زمرہ катэгорыя
""")

# Codes of Wikipedias, prefixes in the wikis of the Wikimedia Foundation. A link to one of them
# without a leading colon is not part of the text.
WIKIPEDIA_CODES = frozenset(
    words("""
    aa ab ace ady af ak als alt am ami an ang ar arc ary arz as ast atj av avk awa ay az azb ba
    ban bar bat-smg bbc bcl be be-tarask be-x-old bg bh bi bjn blk bm bn bo bpy br bs bug bxr ca
    cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy da dag de dga din diq dsb
    dty dv dz ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy ga
    gag gan gcr gd gl glk gn gom gor got gpe gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht
    hu hy hyw hz ia id ie ig ii ik ilo inh io is it iu ja jam jbo jv ka kaa kab kbd kbp kcg kg
    ki kj kk kl km kn ko koi kr krc ks ksh ku kv kw ky la lad lb lbe lez lfn lg li lij lld lmo
    ln lo lrc lt ltg lv mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mr mrj ms mt
    mus mwl my myv mzn na nah nap nds nds-nl ne new ng nia nl nn no nb nov nqo nrm nso nv ny oc
    olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro
    roa-rup roa-tara ru rue rw sa sah sat sc scn sco sd se sg sh shi shn shy si simple sk skr sl
    sm smn sn so sq sr srn ss st stq su sv sw szl szy ta tay tcy te tet tg th ti tk tl tly tn to
    tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf
    yi yo za zea zh zh-classical zh-min-nan zh-yue zu
    """)
)

# Prefixes of other wikis in every installation of MediaWiki. A link to them is part of the text.
INTERWIKI_PREFIXES = frozenset(
    words("""
    acronym advogato arxiv c2find cache commons dictionary doi drumcorpswiki dwjwiki elibre
    emacswiki foldoc foxwiki freebsdman gentoo-wiki google googlegroups hammondwiki hrwiki imdb
    kmwiki linuxwiki lojban lqwiki meatball mediawikiwiki mediazilla memoryalpha metawiki
    metawikimedia mozillawiki mw oeis openwiki pmid pythoninfo rfc s23wiki seattlewireless
    senseislibrary shoutwiki sqlite squeak theopedia tmbw tmnet twiki uncyclopedia unreal usemod
    wikia wikibooks wikidata wikif1 wikihow wikimedia wikinews wikinfo wikipedia wikiquote
    wikisource wikispecies wikiversity wikivoyage wikt wiktionary
    """)
)

# Other codes of languages that lead to a Wikipedia, or name it.
OTHER_CODES = {
    "be-tarask": "be-x-old", "cmn": "zh", "egl": "eml", "gsw": "als", "lzh": "zh-classical",
    "nan": "zh-min-nan", "nb": "no", "rup": "roa-rup", "sgs": "bat-smg", "vro": "fiu-vro",
    "yue": "zh-yue",
}  # fmt: skip

# Further ones in the wikis of the Wikimedia Foundation.
WIKIMEDIA_PREFIXES = frozenset(
    words("""
    w s q b n v voy species c m meta metawikipedia d foundation wmf phab phabricator bugzilla
    incubator outreach oldwikisource imdbname imdbtitle wikitech quality nost nostalgia sep11
    tools toollabs toolforge gerrit irc mail ticket otrs
    """)
)

REDIRECT_WORDS = words("""
    redirect weiterleitung rinvia redirection redirección redireccion doorverwijzing
    redirecionamento patrz przekieruj tam перенаправление перенапр перенаправлення تحويل
    تغییر_مسیر تغییرمسیر 転送 リダイレクト 重定向 넘겨주기 omdirigering omdiriger omdirigere ohjaus
    uudelleenohjaus přesměruj presmeruj átirányítás redirecteaza yönlendirme yönlendi̇rme alih
    lencongan đổi הפניה ανακατευθυνση преусмери преусмјери пренасочване пренасочување виж
    preusmjeri preusmeri birzuzendu redirecció tilvísun suuna alidirektu alidirektilo
    nukreipimas pāradresēt peradresavimas перанакіраванне айдау athsheoladh ail-cyfeirio aoẓẓu
    리다이렉트 अनुप्रेषित पुनर्निर्देशन เปลี่ยนทาง გადამისამართება վերահղում istiqamətləndirmə
    aanstuur
""")

# Templates of disambiguation pages by language, for dumps without templates (``names.DumpNames``).
_DISAMBIGUATION_TEMPLATES = {
    "": "disambig disambiguation",
    "af": "dubbelsinnig",
    "ar": "توضيح",
    "az": "dəqiqləşdirmə",
    "be": "неадназначнасць",
    "bg": "пояснение",
    "bn": "দ্ব্যর্থতা_নিরসন",
    "bs": "čvor višeznačnost",
    "ca": "desambiguació",
    "cs": "rozcestník",
    "cy": "gwahaniaethu",
    "da": "flertydig",
    "de": "begriffsklärung bkl",
    "el": "αποσαφήνιση",
    "en": """
        dab disamb hndis geodis human_name_disambiguation mathdab schooldis
        place_name_disambiguation airport_disambiguation numberdis
        letter-number_combination_disambiguation roaddis shipindex hospitaldis
        station_disambiguation disambiguation_cleanup callsigndis
    """,
    "eo": "apartigilo",
    "es": "desambiguación desambigua des",
    "et": "täpsustus täpsustuslehekülg",
    "eu": "argipen",
    "fa": "ابهام‌زدایی",
    "fi": "täsmennyssivu",
    "fr": "homonymie homonymes toponymie patronymie paronymie internationalisation_homonymes",
    "ga": "idirdhealú",
    "gl": "homónimos",
    "he": "פירושונים",
    "hi": "बहुविकल्पी_शब्द",
    "hr": "razdvojba",
    "hu": "egyért",
    "hy": "բազմիմաստություն",
    "id": "disambiguasi",
    "is": "aðgreining",
    "it": "disambigua",
    "ja": "曖昧さ回避 aimai 人名の曖昧さ回避 地名の曖昧さ回避",
    "ka": "მრავალმნიშვნელოვანი",
    "kk": "бірнеше_мағына айрық",
    "ko": "동음이의 동명이인",
    "la": "discretiva",
    "lt": "nuorodinis",
    "lv": "nozīmju_atdalīšana",
    "mk": "појаснување",
    "ms": "nyahkekaburan",
    "nl": "dp doorverwijspagina dpintro",
    "nn": "fleirtyding",
    "no": "peker flertydig",
    "pl": "ujednoznacznienie",
    "pt": "desambiguação desambig",
    "ro": "dezambiguizare",
    "ru": "неоднозначность многозначность неоднозначно",
    "sh": "višeznačnost razvrstavanje",
    "simple": "dab disamb hndis geodis",
    "sk": "rozlišovacia_stránka",
    "sl": "razločitev",
    "sq": "kthjellim",
    "sr": "вишезначна_одредница",
    "sv": "förgrening gren",
    "sw": "maana",
    "th": "แก้กำกวม",
    "tl": "paglilinaw",
    "tr": "anlam_ayrımı",
    "uk": "неоднозначність багатозначність",
    "vi": "trang_định_hướng định_hướng",
    "zh": "消歧义 消歧義 disambig-cn",
}


def disambiguation_templates(language: str) -> frozenset[str]:
    """Casefolded names of the templates that mark disambiguation pages in wikis of a language."""
    names = _DISAMBIGUATION_TEMPLATES
    own = names.get(language) or names.get(language.partition("-")[0], "")
    return frozenset(words(f"{names['']} {own}"))


DISAMBIGUATION_SUFFIXES = frozenset(
    words("""
    disambiguation begriffsklärung disambigua homonymie desambiguación doorverwijspagina
    desambiguação ujednoznacznienie значения значення توضيح ابهام‌زدایی 曖昧さ回避 消歧义 消歧義 동음이의
    olika_betydelser flertydig täsmennyssivu rozcestník rozlišovacia_stránka egyértelműsítő
    dezambiguizare anlam_ayrımı disambiguasi nyahkekaburan định_hướng פירושונים αποσαφήνιση
    вишезначна_одредница пояснение desambiguació argipen apartigilo
    begriffsklärungsseite begriffsklärungsseiten बहुविकल्पी แก้ความกำกวม
    """)
)

# Beginnings of words in the names of categories of disambiguation pages.
DISAMBIGUATION_STEMS = frozenset(
    words("""
    disambigu desambigu begriffsklär homonymie doorverwijspagina ujednoznaczn неоднозначн многозначн
    страницы_значений багатозначн صفحات_توضيح ابهام‌زدایی 曖昧さ回避 消歧义 消歧義 동음이의 olika_betydelser
    förgreningssid flertydig pekersid täsmennyssivu rozcestník rozlišovaci egyértelműsítő dezambigu
    anlam_ayrım nyahkekaburan định_hướng פירושונים αποσαφήνισ вишезначн пояснителн argipen_orri
    apartigil
    """)
)

# Letters after ``]]`` that belong to the link. MediaWiki has one set per language. This is the union
# of their small letters (Han, Kana, Thai, Hangul and other scripts have none).
LINK_TRAIL = re.compile(
    "[a-zß-öø-ÿāăąćĉċčďđēĕėęěĝğġģĥħĩīĭįıĵķĺļľŀłńņňŋōŏőœŕŗřśŝşšţťŧũūŭůűųŵŷźżžșțơư"
    "ά-ώа-џґәғқңөұүһա-ևא-תء-يٱ-ۓ]+"
)
